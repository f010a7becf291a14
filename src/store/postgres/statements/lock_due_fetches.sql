-- Locks resources with a fetch that is due and that nobody has, the longest overdue first, at most so many.
SELECT r.hash, r.source, r.tenant, r.kind, r.id FROM tidegate.resources r
WHERE r.hash = ANY (ARRAY (
    SELECT f.resource_hash FROM tidegate.fetches f
    WHERE f.due_ms IS NOT NULL AND greatest(f.due_ms, f.leased_until_ms) <= (SELECT tidegate.now_ms())
    ORDER BY greatest(f.due_ms, f.leased_until_ms) LIMIT $1))
ORDER BY r.hash
FOR UPDATE SKIP LOCKED
