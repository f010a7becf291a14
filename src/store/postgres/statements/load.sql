-- What the rules need of resources, in one snapshot: the store's clock (the row without a hash, in `rev`), and the rows
-- that are there with their holds, where they have any, and with the epoch of their fetch, where that is asked for.
SELECT NULL::uuid AS hash, tidegate.now_ms() AS rev, NULL::bytea AS version, NULL::text AS version_text,
       NULL::bigint AS epoch, NULL::text AS step, NULL::boolean AS deleted, NULL::text AS fields, NULL::uuid AS event_id,
       NULL::bigint AS applied_at_ms, NULL::bigint AS applied, NULL::bigint AS held, NULL::bigint AS fetch_epoch,
       NULL::text[] AS holds
UNION ALL
SELECT r.hash, r.rev, r.version, r.version_text, r.epoch, r.step, r.deleted, r.fields, r.event_id,
       r.applied_at_ms, r.applied, r.held,
       CASE WHEN $2::boolean THEN (SELECT f.epoch FROM tidegate.fetches f WHERE f.resource_hash = r.hash) END,
       CASE WHEN r.held > 0 THEN (
           SELECT array_agg(json_build_object('id', h.event_id, 'until_ms', h.until_ms, 'parked_in', h.parked_in,
                                              'fetch', h.awaits, 'subject', h.subject)::text ORDER BY h.event_id)
           FROM tidegate.holds h WHERE h.resource_hash = r.hash) END
FROM tidegate.resources r
WHERE r.hash = ANY ($1::uuid[])
