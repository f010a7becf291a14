-- Writes what the rules decided: claims, states, what waits, events. All or nothing: a key that was taken meanwhile, or
-- a state that is not the one decided on any more, ends the statement (I3, I4, I5).
--
-- Given: claims, keys first, each kind sorted by hash; states sorted by hash; events.
WITH claims AS MATERIALIZED (
    SELECT * FROM unnest($1::tidegate.claim[])
),
claimed AS (
    {claim}
),
written AS (
    INSERT INTO tidegate.resources AS r (hash, rev, source, tenant, kind, id, version, version_text, ties_apply, epoch,
                                         step, deleted, fields, event_id, applied_at_ms, applied, held)
    SELECT s.hash, s.rev, s.source, s.tenant, s.kind, s.id, s.version, s.version_text, false, s.epoch,
           s.step, s.deleted, s.fields, s.event_id, s.applied_at_ms, s.applied, s.held
    FROM unnest($2::tidegate.state[]) s
    WHERE (SELECT count(*) FROM claimed) = cardinality($1)
    ON CONFLICT (hash) DO UPDATE SET
        rev           = excluded.rev,
        version       = excluded.version,
        version_text  = excluded.version_text,
        epoch         = excluded.epoch,
        step          = excluded.step,
        deleted       = excluded.deleted,
        fields        = excluded.fields,
        event_id      = excluded.event_id,
        applied_at_ms = excluded.applied_at_ms,
        applied       = excluded.applied,
        held          = excluded.held
        WHERE r.rev = excluded.rev - 1
    RETURNING true
),
{waits}
recorded AS (
    INSERT INTO tidegate.events (id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
                                 version, version_text, verdict, tie, why, conflicts_with, digest, headers, body)
    SELECT g.id, g.received_at_ms, g.source, g.tenant, g.key, g.kind, g.resource_hash, g.resource_kind, g.resource_id,
           g.version, g.version_text, g.verdict, g.tie, g.why, g.conflicts_with, g.digest, g.headers, g.body
    FROM unnest($3::tidegate.given[]) g
    RETURNING true
)
SELECT CASE WHEN (SELECT count(*) FROM claimed) = cardinality($1) AND (SELECT count(*) FROM written) = cardinality($2)
            THEN (SELECT count(*) FROM recorded){ended}
            ELSE tidegate.rival() END
