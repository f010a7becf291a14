-- Claims, guards, writes and records a batch of plain events in one statement, so in one transaction.
-- Agrees with `rules::order::decide_resource`; the store suite compares the two.
--
-- Given: each key once, sorted by hash; at most one guard an event; events of a resource all with or all
-- without a version; `ties_apply` is true where there is no version.
-- Plans: the key slots and the resources are only probed by index (scalar subqueries and ON CONFLICT, never
-- a join, so no plan can read them whole); joins are among the batch's own rows, by hash.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::tidegate.given[])
),
-- Nothing is claimed when the ring has moved on: the writer sees that and comes again with the right slot.
claimed AS (
    {claim_given}
),
-- `leads`: the first of its version in the batch.
fresh AS MATERIALIZED (
    SELECT g.n, g.id, g.received_at_ms, g.source, g.tenant, g.resource_hash, g.resource_kind, g.resource_id, g.version,
           g.version_text, g.ties_apply, g.deletes, g.ignored,
           row_number() OVER (PARTITION BY g.resource_hash, g.ignored, g.version ORDER BY g.n) = 1 AS leads
    FROM given g
    JOIN claimed c ON c.event_id = g.id
),
-- The one event of each resource that may become its state; `worth`: how many apply if nothing is stored.
newest AS (
    SELECT DISTINCT ON (f.resource_hash) f.*,
           count(*) FILTER (WHERE f.leads OR f.ties_apply) OVER (PARTITION BY f.resource_hash) AS worth
    FROM fresh f
    WHERE f.resource_hash IS NOT NULL AND NOT f.ignored
    ORDER BY f.resource_hash, f.version DESC, f.ties_apply DESC, CASE WHEN f.ties_apply THEN -f.n ELSE f.n END
),
-- The guard (I5). An equal version passes too, so that `previous` comes back and the tie can be told; what
-- the tie rule keeps is then kept column by column.
guarded AS (
    INSERT INTO tidegate.resources AS r (hash, rev, source, tenant, kind, id, version, version_text, previous,
                                         ties_apply, epoch, deleted, event_id, applied_at_ms, applied, held)
    SELECT w.resource_hash, 1, w.source, w.tenant, w.resource_kind, w.resource_id, w.version, w.version_text, NULL,
           w.ties_apply, 1, w.deletes, w.id, w.received_at_ms, w.worth, 0
    FROM newest w
    ORDER BY w.resource_hash
    ON CONFLICT (hash) DO UPDATE SET
        rev           = r.rev + 1,
        previous      = r.version,
        version       = coalesce(excluded.version, r.version),
        version_text  = coalesce(excluded.version_text, r.version_text),
        ties_apply    = excluded.ties_apply,
        deleted       = CASE WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN r.deleted ELSE excluded.deleted END,
        fields        = CASE WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN r.fields END,
        event_id      = CASE WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN r.event_id ELSE excluded.event_id END,
        applied_at_ms = CASE WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN r.applied_at_ms ELSE excluded.applied_at_ms END,
        applied       = r.applied + CASE
            WHEN excluded.version = r.version AND NOT excluded.ties_apply THEN 0
            WHEN excluded.applied = 1 OR r.version IS NULL OR excluded.version IS NULL THEN excluded.applied
            ELSE (SELECT count(*) FROM fresh f
                  WHERE f.resource_hash = r.hash AND NOT f.ignored
                    AND ((f.version > r.version AND (f.leads OR f.ties_apply)) OR (f.version = r.version AND f.ties_apply)))
        END
        WHERE r.version IS NULL OR excluded.version IS NULL OR excluded.version >= r.version
    RETURNING r.hash, r.previous
),
-- A resource that is not among `guarded` holds something newer than all its events of this batch.
judged AS MATERIALIZED (
    SELECT f.id, f.resource_hash, f.version_text,
           CASE WHEN f.ignored THEN 'ignored'
                WHEN f.resource_hash IS NULL OR f.version IS NULL THEN 'applied'
                WHEN s.hash IS NULL THEN 'stale'
                WHEN s.previous IS NULL OR f.version > s.previous THEN
                     CASE WHEN f.leads OR f.ties_apply THEN 'applied' ELSE 'stale' END
                WHEN f.version = s.previous AND f.ties_apply THEN 'applied'
                ELSE 'stale' END AS verdict,
           coalesce(NOT f.ignored AND f.version IS NOT NULL AND s.hash IS NOT NULL
                    AND (f.version = s.previous OR (NOT f.leads AND (s.previous IS NULL OR f.version > s.previous))),
                    false) AS tie
    FROM fresh f
    LEFT JOIN guarded s ON s.hash = f.resource_hash
),
recorded AS (
    INSERT INTO tidegate.events (id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
                                 version, version_text, verdict, tie, why, conflicts_with, digest, headers, body)
    SELECT g.id, g.received_at_ms, g.source, g.tenant, g.key, g.kind, g.resource_hash, g.resource_kind, g.resource_id,
           g.version, g.version_text, j.verdict, j.tie,
           CASE WHEN j.verdict <> 'stale' THEN NULL
                WHEN j.tie THEN 'equals ' || j.version_text
                ELSE 'older than ' || coalesce((SELECT r.version_text FROM tidegate.resources r WHERE r.hash = j.resource_hash), 'the stored one') END,
           NULL, g.digest, g.headers, g.body
    FROM given g
    JOIN judged j ON j.id = g.id
)
SELECT id, verdict, tie FROM judged
