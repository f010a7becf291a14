-- Locks the states of a batch in one order, sorted by hash. `FOR UPDATE` cannot lock a row that is not there, so a new
-- resource gets its row first, with `rev` 0; what is decided then overwrites it.
INSERT INTO tidegate.resources AS r (hash, rev, source, tenant, kind, id, ties_apply, epoch, deleted, applied_at_ms, applied, held)
SELECT g.hash, 0, g.source, g.tenant, g.kind, g.id, false, 1, false, 0, 0, 0
FROM unnest($1::tidegate.state[]) g
ON CONFLICT (hash) DO UPDATE SET previous = r.version
