-- Locks resources with holds that are over their time, the longest overdue first, at most so many; those that somebody
-- else has locked are left to him.
SELECT r.hash FROM tidegate.resources r
WHERE r.hash = ANY (ARRAY (
    SELECT DISTINCT d.resource_hash
    FROM (SELECT h.resource_hash FROM tidegate.holds h
          WHERE h.until_ms <= (SELECT tidegate.now_ms()) ORDER BY h.until_ms LIMIT $1) d))
ORDER BY r.hash
FOR UPDATE SKIP LOCKED
