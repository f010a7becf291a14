INSERT INTO tidegate.failures AS f (name, event_id, source, tenant, key, kind, effect, error, held, failures, first_at_ms, last_at_ms)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, 1, now.ms, now.ms FROM (SELECT tidegate.now_ms() AS ms) now
ON CONFLICT (name) DO UPDATE
SET event_id = excluded.event_id, effect = excluded.effect, error = excluded.error, held = excluded.held,
    failures = f.failures + 1, last_at_ms = excluded.last_at_ms
RETURNING failures, last_at_ms
