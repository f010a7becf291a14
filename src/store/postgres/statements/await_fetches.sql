-- Marks what waits for the provider, and not for a person or for time, with the claim whose answer will settle it; the
-- resources' revisions say so.
WITH awaiting AS (
    UPDATE tidegate.holds h SET awaits = f.epoch
    FROM tidegate.fetches f
    WHERE f.resource_hash = h.resource_hash AND h.resource_hash = ANY ($1::uuid[]) AND f.resource_hash = ANY ($1::uuid[])
      AND h.until_ms IS NULL AND h.parked_in IS NULL
)
UPDATE tidegate.resources r SET rev = r.rev + 1 WHERE r.hash = ANY ($1::uuid[])
