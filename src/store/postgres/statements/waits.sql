-- The part of `write.sql` about what waits, where there is any: holds that are new or changed, holds that ended,
-- fetches that were answered or are wanted.
held AS (
    INSERT INTO tidegate.holds (event_id, resource_hash, until_ms, parked_in, awaits, why, subject)
    SELECT h.event_id, h.resource_hash, h.until_ms, h.parked_in, h.awaits, h.why, h.subject
    FROM unnest($4::tidegate.hold[]) h
    ON CONFLICT (event_id) DO UPDATE SET
        until_ms  = excluded.until_ms,
        parked_in = excluded.parked_in,
        awaits    = excluded.awaits,
        why       = excluded.why
),
ended AS (
    DELETE FROM tidegate.holds h
    WHERE h.event_id = ANY (ARRAY (SELECT e.event_id FROM unnest($5::tidegate.ended[]) e))
    RETURNING h.event_id
),
settled AS (
    INSERT INTO tidegate.settled (event_id, settled_at_ms, verdict, tie, why)
    SELECT e.event_id, $7, e.verdict, e.tie, e.why
    FROM unnest($5::tidegate.ended[]) e
),
-- A fetch that is due or claimed already is enough.
fetched AS (
    INSERT INTO tidegate.fetches AS f (resource_hash, epoch, attempts, due_ms)
    SELECT w.resource_hash, w.answered, 0, CASE WHEN w.wanted THEN $7 END
    FROM unnest($6::tidegate.fetching[]) w
    ON CONFLICT (resource_hash) DO UPDATE SET
        attempts        = CASE WHEN excluded.epoch > 0 AND excluded.epoch = f.epoch THEN 0 ELSE f.attempts END,
        due_ms          = CASE WHEN excluded.epoch > 0 AND excluded.epoch = f.epoch THEN excluded.due_ms
                               ELSE coalesce(f.due_ms, excluded.due_ms) END,
        leased_until_ms = CASE WHEN excluded.epoch = 0 OR excluded.epoch <> f.epoch THEN f.leased_until_ms END,
        last_error      = CASE WHEN excluded.epoch = 0 OR excluded.epoch <> f.epoch THEN f.last_error END
),
