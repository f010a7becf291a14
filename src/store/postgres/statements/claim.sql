-- Claims keys in the ring's current slot; returns the events whose key was free. Sorted by hash.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS g(hash, id, digest)
)
{claim}
