-- Who claimed these keys, and which slot of the ring is current (the row without a hash).
SELECT NULL::uuid, NULL::uuid, NULL::uuid, m.key_slot FROM tidegate.meta m WHERE m.one
UNION ALL
SELECT k.hash, k.event_id, k.digest, NULL FROM tidegate.keys_0 k WHERE k.hash = ANY ($1::uuid[])
UNION ALL
SELECT k.hash, k.event_id, k.digest, NULL FROM tidegate.keys_1 k WHERE k.hash = ANY ($1::uuid[])
UNION ALL
SELECT k.hash, k.event_id, k.digest, NULL FROM tidegate.keys_2 k WHERE k.hash = ANY ($1::uuid[])
