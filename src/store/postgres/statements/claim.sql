-- Claims keys; returns those that were free.
WITH claims AS MATERIALIZED (
    SELECT * FROM unnest($1::tidegate.claim[])
),
claimed AS (
    {claim}
)
SELECT hash FROM claimed
