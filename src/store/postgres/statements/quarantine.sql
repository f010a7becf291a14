-- Keeps unusable requests, the same bytes of a sender once; a repeat is counted, a second try of one write is not.
INSERT INTO tidegate.quarantine AS q (id, received_at_ms, source, tenant, code, reason, digest, times, headers, body)
SELECT g.id, g.received_at_ms, g.source, g.tenant, g.code, g.reason, g.digest, g.times, g.headers, g.body
FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::bigint[],
            $9::bytea[], $10::bytea[])
     AS g(id, received_at_ms, source, tenant, code, reason, digest, times, headers, body)
ON CONFLICT (digest, source, tenant) DO UPDATE SET
    times = q.times + CASE WHEN q.id = excluded.id THEN 0 ELSE excluded.times END
RETURNING q.id, q.digest, q.source, q.tenant
