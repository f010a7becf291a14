-- Claims keys in the ring's current slot; returns the events whose key was free. Sorted by hash.
INSERT INTO tidegate.{current} AS k (hash, event_id, digest)
SELECT g.hash, g.id, g.digest
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS g(hash, id, digest)
WHERE (SELECT m.key_slot FROM tidegate.meta m WHERE m.one) = {slot}
  AND (SELECT true FROM tidegate.{older_a} a WHERE a.hash = g.hash) IS NULL
  AND (SELECT true FROM tidegate.{older_b} b WHERE b.hash = g.hash) IS NULL
ON CONFLICT (hash) DO NOTHING
RETURNING k.event_id
