-- Locks the states of a batch in one order, sorted by hash, and loads them. `FOR UPDATE` cannot lock a row that is
-- not there, so a new resource gets its row first; what is decided then overwrites it.
INSERT INTO tidegate.resources AS r (hash, rev, source, tenant, kind, id, ties_apply, deleted, event_id, applied_at_ms, applied)
SELECT g.hash, 0, g.source, g.tenant, g.kind, g.id, false, false, g.event_id, 0, 0
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::uuid[])
     AS g(hash, source, tenant, kind, id, event_id)
ON CONFLICT (hash) DO UPDATE SET previous = r.version
RETURNING r.hash, r.rev, r.version, r.version_text
