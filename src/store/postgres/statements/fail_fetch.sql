-- Ends a claim without an answer, if it is still the newest: due again after a pause, or at rest.
UPDATE tidegate.fetches f SET
    attempts        = CASE WHEN $4::bigint IS NULL THEN 0 ELSE f.attempts END,
    due_ms          = tidegate.now_ms() + $4,
    leased_until_ms = NULL,
    last_error      = $3
WHERE f.resource_hash = $1 AND f.epoch = $2
