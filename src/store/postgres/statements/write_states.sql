-- Writes what the rules decided over rows that `load_states.sql` has locked. The guard is checked again (I5).
INSERT INTO tidegate.resources AS r (hash, source, tenant, kind, id, version, version_text, ties_apply, deleted, event_id,
                                     applied_at_ms, applied)
SELECT g.hash, '', '', '', '', g.version, g.version_text, g.ties_apply, g.deleted, g.event_id, g.applied_at_ms, g.applied
FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::boolean[], $5::boolean[], $6::uuid[], $7::bigint[], $8::bigint[])
     AS g(hash, version, version_text, ties_apply, deleted, event_id, applied_at_ms, applied)
ON CONFLICT (hash) DO UPDATE SET
    version       = excluded.version,
    version_text  = excluded.version_text,
    ties_apply    = excluded.ties_apply,
    deleted       = excluded.deleted,
    event_id      = excluded.event_id,
    applied_at_ms = excluded.applied_at_ms,
    applied       = r.applied + excluded.applied
    WHERE r.version IS NULL OR excluded.version >= r.version
