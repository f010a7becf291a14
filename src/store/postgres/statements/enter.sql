SELECT set_config('statement_timeout', $1, true),
       set_config('search_path', coalesce(
           (SELECT string_agg(quote_ident(s.name), ', ' ORDER BY s.place)
            FROM unnest(current_schemas(false)) WITH ORDINALITY AS s(name, place)
            WHERE s.name <> 'tidegate'),
           'public'), true)
