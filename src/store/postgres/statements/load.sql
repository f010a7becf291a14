-- The states that a batch meets, in one snapshot and without a lock.
SELECT r.hash, r.rev, r.version, r.version_text FROM tidegate.resources r WHERE r.hash = ANY ($1::uuid[])
