-- How keys are claimed, of the events `{of}`, sorted by hash: those that are free, in the ring's current slot. Nothing is
-- claimed when the ring has moved on: the writer sees that and comes again with the right slot.
    INSERT INTO tidegate.{current} AS k (hash, event_id, digest)
    SELECT g.hash, g.id, g.digest
    FROM {of} g
    WHERE (SELECT m.key_slot FROM tidegate.meta m WHERE m.one) = {slot}
      AND (SELECT true FROM tidegate.{older_a} a WHERE a.hash = g.hash) IS NULL
      AND (SELECT true FROM tidegate.{older_b} b WHERE b.hash = g.hash) IS NULL
    ON CONFLICT (hash) DO NOTHING
    RETURNING k.event_id, k.hash
