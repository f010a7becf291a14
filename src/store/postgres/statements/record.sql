-- Records events with their verdicts.
INSERT INTO tidegate.events (id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
                             version, version_text, verdict, tie, conflicts_with, digest, headers, body)
SELECT id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
       version, version_text, verdict, tie, NULL, digest, headers, body
FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[], $8::text[], $9::text[],
            $10::bytea[], $11::text[], $12::text[], $13::boolean[], $14::uuid[], $15::bytea[], $16::bytea[])
     AS g(id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
          version, version_text, verdict, tie, digest, headers, body)
