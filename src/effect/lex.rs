//! The words of an SQL text: enough to find parameters, the first word and what is written to, and no more.

use super::Dialect;

/// A word of SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A keyword or a plain name.
    Word(&'t str),
    /// A name in quotes, without them.
    Quoted(String),
    /// `:name`.
    Parameter(&'t str),
    /// A parameter of another form, such as `$1` or `?`.
    Foreign(&'t str),
    /// A literal, an operator, a comment or blanks: copied as it is.
    Other(&'t str),
    /// `;`
    End,
}

/// Splits a text into its words; together they are the text again. An error says what is not closed.
pub(super) fn tokens(sql: &str, dialect: Dialect) -> Result<Vec<(Token<'_>, &str)>, String> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = length(rest, first, dialect)?;
        let (text, behind) = rest.split_at(length);
        tokens.push((token(text, first, dialect), text));
        rest = behind;
    }
    Ok(tokens)
}

fn length(rest: &str, first: char, dialect: Dialect) -> Result<usize, String> {
    let postgres = dialect == Dialect::Postgres;
    match first {
        '\'' => quoted(rest, '\'', 1, false),
        'e' | 'E' if postgres && rest[1..].starts_with('\'') => quoted(rest, '\'', 2, true),
        '"' => quoted(rest, '"', 1, false),
        '`' if !postgres => quoted(rest, '`', 1, false),
        '[' if !postgres => rest.find(']').map(|end| end + 1).ok_or_else(|| "has a `[` without its `]`".to_owned()),
        '-' if rest.starts_with("--") => Ok(rest.find('\n').map_or(rest.len(), |end| end + 1)),
        '/' if rest.starts_with("/*") => comment(rest, postgres),
        '$' if postgres => dollar(rest),
        ':' if rest.starts_with("::") || rest.starts_with(":=") => Ok(2),
        ':' | '@' | '$' | '?' => Ok(1 + name_length(&rest[1..])),
        first if first.is_alphabetic() || first == '_' => Ok(name_length(rest)),
        first if first.is_ascii_digit() => Ok(name_length(rest)),
        first => Ok(first.len_utf8()),
    }
}

fn token<'t>(text: &'t str, first: char, dialect: Dialect) -> Token<'t> {
    let postgres = dialect == Dialect::Postgres;
    let inner = || text[1..text.len() - 1].to_owned();
    match first {
        '"' => Token::Quoted(inner().replace("\"\"", "\"")),
        '`' if !postgres => Token::Quoted(inner().replace("``", "`")),
        '[' if !postgres => Token::Quoted(inner()),
        ':' if text.len() > 1 && text[1..].starts_with(|next: char| next.is_alphabetic() || next == '_') => {
            Token::Parameter(&text[1..])
        }
        '$' if text.len() > 1 && text[1..].starts_with(|next: char| next.is_ascii_digit()) => Token::Foreign(text),
        // an operator of Postgres, and a parameter of SQLite
        '?' | '@' | '$' if !postgres => Token::Foreign(text),
        ';' => Token::End,
        first if (first.is_alphabetic() || first == '_') && !text.ends_with('\'') => Token::Word(text),
        _ => Token::Other(text),
    }
}

/// The length of a literal that begins with so many bytes of opening; its quote is doubled, or escaped.
fn quoted(rest: &str, quote: char, opening: usize, escapes: bool) -> Result<usize, String> {
    let mut at = opening;
    let bytes = rest.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        if escapes && byte == b'\\' {
            at += 2;
        } else if byte == quote as u8 {
            if bytes.get(at + 1) != Some(&byte) {
                return Ok(at + 1);
            }
            at += 2;
        } else {
            at += 1;
        }
    }
    Err(format!("has a {quote} without its end"))
}

/// The length of a comment; Postgres' own may hold others.
fn comment(rest: &str, nested: bool) -> Result<usize, String> {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest.as_bytes().get(at..at + 2) {
            Some(b"/*") if depth == 0 || nested => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return Ok(at);
                }
            }
            _ => at += 1,
        }
    }
    Err("has a /* without its */".to_owned())
}

/// The length of `$tag$ … $tag$`, of `$1`, or of a lone `$`.
fn dollar(rest: &str) -> Result<usize, String> {
    let name = name_length(&rest[1..]);
    if !rest[1 + name..].starts_with('$') || rest[1..].starts_with(|next: char| next.is_ascii_digit()) {
        return Ok(1 + name);
    }
    let tag = &rest[..name + 2];
    let end = rest[tag.len()..].find(tag).ok_or_else(|| format!("has a {tag} without its end"))?;
    Ok(tag.len() + end + tag.len())
}

fn name_length(text: &str) -> usize {
    text.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(sql: &str, dialect: Dialect) -> Vec<String> {
        let tokens = tokens(sql, dialect).expect("words");
        let whole: String = tokens.iter().map(|(_, text)| *text).collect();
        assert_eq!(whole, sql);
        let name = |(token, _): (Token<'_>, &str)| match token {
            Token::Parameter(name) => Some(name.to_owned()),
            _ => None,
        };
        tokens.into_iter().filter_map(name).collect()
    }

    #[test]
    fn parameters_are_found_and_nothing_that_only_looks_like_one() {
        let everywhere = "SELECT :a, ':b', \"c:d\", -- :e\n /* :f */ :g + 1";
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            assert_eq!(parameters(everywhere, dialect), ["a", "g"]);
            assert_eq!(parameters("INSERT INTO t VALUES('it''s :x', :y)", dialect), ["y"]);
        }
        let postgres =
            r"SELECT :a::text, E'\':b', $q$ :c $q$, $$:d$$, /* /* :e */ :f */ x ? 'y', now() AT TIME ZONE 'z:00', :g";
        assert_eq!(parameters(postgres, Dialect::Postgres), ["a", "g"]);
        assert_eq!(parameters("SELECT `:a`, [:b], :c ->> '$.d'", Dialect::Sqlite), ["c"]);
    }

    #[test]
    fn what_is_not_closed_is_said() {
        for (sql, said) in [("SELECT 'a", "'"), ("SELECT \"a", "\""), ("SELECT /* a", "/*"), ("SELECT $x$ a", "$x$")] {
            assert!(tokens(sql, Dialect::Postgres).expect_err("a fault").contains(said), "{sql}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_split_without_a_loss(sql in "[ -~äß\n]{0,60}") {
            for dialect in [Dialect::Postgres, Dialect::Sqlite] {
                if let Ok(tokens) = tokens(&sql, dialect) {
                    let whole: String = tokens.iter().map(|(_, text)| *text).collect();
                    proptest::prop_assert_eq!(&whole, &sql);
                }
            }
        }
    }
}
