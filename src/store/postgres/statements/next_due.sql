-- In how many milliseconds the next hold is over; NULL when none is.
SELECT CASE WHEN h.until_ms IS NOT NULL THEN greatest(h.until_ms - tidegate.now_ms(), 0) END
FROM (SELECT min(until_ms) AS until_ms FROM tidegate.holds WHERE until_ms IS NOT NULL) h
