-- Claims fetches of locked resources: another epoch (I9), another attempt, counted before the work (I10), a lease.
UPDATE tidegate.fetches f SET
    epoch           = f.epoch + 1,
    attempts        = f.attempts + 1,
    leased_until_ms = tidegate.now_ms() + $2
WHERE f.resource_hash = ANY ($1::uuid[])
  AND f.due_ms IS NOT NULL AND greatest(f.due_ms, f.leased_until_ms) <= (SELECT tidegate.now_ms())
RETURNING f.resource_hash, f.epoch, f.attempts
