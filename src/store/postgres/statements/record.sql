-- Records events with their verdicts.
INSERT INTO tidegate.events (id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
                             version, version_text, verdict, tie, conflicts_with, digest, headers, body)
SELECT id, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
       version, version_text, verdict, tie, NULL, digest, headers, body
FROM unnest($1::tidegate.given[], $2::text[], $3::boolean[])
     AS g(n, hash, id, digest, received_at_ms, source, tenant, key, kind, resource_hash, resource_kind, resource_id,
          version, version_text, ties_apply, deletes, ignored, headers, body, verdict, tie)
