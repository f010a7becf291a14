-- In how many milliseconds the next fetch can be claimed; NULL when none is open.
SELECT CASE WHEN f.at_ms IS NOT NULL THEN greatest(f.at_ms - tidegate.now_ms(), 0) END
FROM (SELECT min(greatest(due_ms, leased_until_ms)) AS at_ms FROM tidegate.fetches WHERE due_ms IS NOT NULL) f
