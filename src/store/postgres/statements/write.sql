-- Writes what the rules decided: claims, states, events, in this order. All or nothing: a key that was taken
-- meanwhile, or a state that is not the one decided on any more, ends the statement (I3, I5).
--
-- Given: events sorted by key, their number; states sorted by hash, their number.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::tidegate.given[])
),
claimed AS (
    {claim}
),
written AS (
    INSERT INTO tidegate.resources AS r (hash, rev, source, tenant, kind, id, version, version_text, ties_apply, deleted,
                                         event_id, applied_at_ms, applied)
    SELECT * FROM unnest($3::tidegate.state[])
    WHERE (SELECT count(*) FROM claimed) = $2
    ON CONFLICT (hash) DO UPDATE SET
        rev           = excluded.rev,
        version       = excluded.version,
        version_text  = excluded.version_text,
        ties_apply    = excluded.ties_apply,
        deleted       = excluded.deleted,
        event_id      = excluded.event_id,
        applied_at_ms = excluded.applied_at_ms,
        applied       = r.applied + excluded.applied
        WHERE r.rev = excluded.rev - 1
    RETURNING true
)
INSERT INTO tidegate.events (id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
                             version, version_text, verdict, tie, conflicts_with, digest, headers, body)
SELECT g.id, g.received_at_ms, g.source, g.tenant, g.key, g.kind, g.resource_hash, g.resource_kind, g.resource_id,
       g.version, g.version_text, g.verdict, g.tie, NULL, g.digest, g.headers, g.body
FROM given g
WHERE CASE WHEN (SELECT count(*) FROM claimed) = $2 AND (SELECT count(*) FROM written) = $4 THEN true
           ELSE tidegate.rival() END
