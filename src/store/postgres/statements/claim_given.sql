-- The claim of every statement that claims: of the keys of `given`, sorted by hash, those that are free.
    INSERT INTO tidegate.{current} AS k (hash, event_id, digest)
    SELECT g.hash, g.id, g.digest
    FROM given g
    WHERE (SELECT m.key_slot FROM tidegate.meta m WHERE m.one) = {slot}
      AND (SELECT true FROM tidegate.{older_a} a WHERE a.hash = g.hash) IS NULL
      AND (SELECT true FROM tidegate.{older_b} b WHERE b.hash = g.hash) IS NULL
    ON CONFLICT (hash) DO NOTHING
    RETURNING k.event_id
