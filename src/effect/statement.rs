//! One statement, read and made ready for a database.

use super::lex::{Token, tokens};
use super::parameter::Parameter;

/// The longest statement.
const LENGTH_MAX: usize = 64 * 1024;

/// Whose SQL it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Postgres.
    Postgres,
    /// SQLite.
    Sqlite,
}

/// A statement with its parameters in place of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text for the database.
    pub sql: String,
    /// What is bound, first to last.
    pub parameters: Vec<Parameter>,
}

/// What a statement may begin with.
const BEGINNINGS: [&str; 8] = ["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "SELECT", "WITH", "CALL"];

/// The tables of the gate in SQLite; in Postgres they have a schema of their own.
const OWN_TABLES: [&str; 11] = [
    "meta",
    "keys_0",
    "keys_1",
    "keys_2",
    "events",
    "conflicts",
    "resources",
    "holds",
    "fetches",
    "quarantine",
    "failures",
];

/// The words behind which a table stands.
const BEFORE_TABLES: [&str; 7] = ["into", "update", "from", "join", "ignore", "replace", "on"];

/// Reads a statement that makes a table and is run at each start; an error says what is wrong with it.
pub(super) fn read_setup(sql: &str, dialect: Dialect) -> Result<String, String> {
    let tokens = tokens(sql, dialect)?;
    let words: Vec<String> = tokens
        .iter()
        .filter_map(|(token, _)| match token {
            Token::Word(word) => Some(word.to_uppercase()),
            _ => None,
        })
        .collect();
    let says = |phrase: &[&str]| words.windows(phrase.len()).any(|window| window == phrase);
    if words.first().is_none_or(|first| first != "CREATE") {
        return Err("must begin with CREATE: it makes what the effect writes to".to_owned());
    }
    if !says(&["IF", "NOT", "EXISTS"]) && !says(&["OR", "REPLACE"]) {
        return Err("must say IF NOT EXISTS or OR REPLACE: it runs at each start".to_owned());
    }
    if tokens.iter().any(|(token, _)| matches!(token, Token::Parameter(_) | Token::Foreign(_))) {
        return Err("has a parameter, and it runs without an event".to_owned());
    }
    let behind = tokens.iter().skip_while(|(token, _)| *token != Token::End).skip(1);
    if behind.clone().any(|(_, text)| !text.trim().is_empty() && !is_comment(text)) {
        return Err("holds more than one statement: write a list, setup = [\"…\", \"…\"]".to_owned());
    }
    spares_own_tables(&tokens, dialect)?;
    Ok(sql.to_owned())
}

impl Statement {
    /// Reads it; an error says what is wrong with it.
    pub fn read(sql: &str, dialect: Dialect) -> Result<Self, String> {
        if sql.len() > LENGTH_MAX {
            return Err(format!("must have at most {LENGTH_MAX} bytes, got {}", sql.len()));
        }
        let tokens = tokens(sql, dialect)?;
        begins_well(&tokens)?;
        spares_own_tables(&tokens, dialect)?;
        let (mut text, mut parameters) = (String::with_capacity(sql.len()), Vec::new());
        let mut ended = false;
        for (token, as_written) in tokens {
            let blank = as_written.trim().is_empty() || is_comment(as_written);
            if ended && !blank && token != Token::End {
                return Err("holds more than one statement: write a list, sql = [\"…\", \"…\"]".to_owned());
            }
            match token {
                Token::End => ended = true,
                Token::Foreign(name) => {
                    return Err(format!("has the parameter {name}; only named ones are known: {}", known()));
                }
                Token::Parameter(name) => {
                    let parameter = Parameter::named(name)
                        .ok_or_else(|| format!("has the parameter :{name}, which is none of {}", known()))?;
                    let place = parameters.iter().position(|known| *known == parameter).unwrap_or_else(|| {
                        parameters.push(parameter);
                        parameters.len() - 1
                    });
                    text.push_str(&bound(parameter, place + 1, dialect));
                }
                _ if ended => {}
                Token::Word(_) | Token::Quoted(_) | Token::Other(_) => text.push_str(as_written),
            }
        }
        Ok(Self { sql: text.trim().to_owned(), parameters })
    }
}

/// How a parameter stands in the text: with its type, where a text is bound for it.
fn bound(parameter: Parameter, number: usize, dialect: Dialect) -> String {
    match (dialect, parameter) {
        (Dialect::Sqlite, _) => format!("?{number}"),
        (Dialect::Postgres, Parameter::Body) => format!("CAST(${number}::text AS jsonb)"),
        (Dialect::Postgres, Parameter::ReceivedAt) => format!("to_timestamp(${number}::bigint / 1000.0)"),
        (Dialect::Postgres, Parameter::Id) => format!("${number}::uuid"),
        (Dialect::Postgres, Parameter::Raw) => format!("${number}::bytea"),
        (Dialect::Postgres, _) => format!("${number}::text"),
    }
}

fn known() -> String {
    let names: Vec<String> = Parameter::ALL.iter().map(|(name, _)| format!(":{name}")).collect();
    names.join(", ")
}

/// A transaction is the gate's to begin and to end, and a schema is nobody's to change in passing.
fn begins_well(tokens: &[(Token<'_>, &str)]) -> Result<(), String> {
    let words = || BEGINNINGS.join(", ");
    let first = tokens.iter().find_map(|(token, _)| match token {
        Token::Word(word) => Some(*word),
        _ => None,
    });
    match first {
        None => Err(format!("is empty: write a statement that begins with one of {}", words())),
        Some(word) if BEGINNINGS.iter().any(|known| word.eq_ignore_ascii_case(known)) => Ok(()),
        Some(word) => Err(format!("begins with {word}; a statement must begin with one of {}", words())),
    }
}

/// Nobody else touches the gate's own tables.
fn spares_own_tables(tokens: &[(Token<'_>, &str)], dialect: Dialect) -> Result<(), String> {
    let parts: Vec<Part> = tokens.iter().filter_map(|(token, text)| Part::of(token, text)).collect();
    let is_own = |place: usize| match (&parts[place..], dialect) {
        ([Part::Name(schema), Part::Dot, ..], Dialect::Postgres) => schema == "tidegate",
        ([Part::Name(word), rest @ ..], Dialect::Sqlite) if BEFORE_TABLES.contains(&word.as_str()) => {
            let ([_, Part::Dot, Part::Name(table), ..] | [Part::Name(table), ..]) = rest else { return false };
            OWN_TABLES.contains(&table.as_str())
        }
        _ => false,
    };
    if (0..parts.len()).any(is_own) {
        return Err("uses a table that is the gate's own: a statement may use yours only".to_owned());
    }
    Ok(())
}

/// What counts of a word when tables are looked for.
#[derive(PartialEq, Eq)]
enum Part {
    /// In small letters.
    Name(String),
    Dot,
    Other,
}

impl Part {
    fn of(token: &Token<'_>, text: &str) -> Option<Self> {
        match token {
            Token::Word(name) => Some(Self::Name(name.to_lowercase())),
            Token::Quoted(name) => Some(Self::Name(name.to_lowercase())),
            Token::Other(".") => Some(Self::Dot),
            _ if text.trim().is_empty() || is_comment(text) => None,
            _ => Some(Self::Other),
        }
    }
}

fn is_comment(text: &str) -> bool {
    text.starts_with("--") || text.starts_with("/*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_places_and_each_is_bound_once() {
        let sql = "INSERT INTO s (id, state, was) VALUES (:resource, :body ->> 'a', :resource) -- :type\n;";
        let postgres = Statement::read(sql, Dialect::Postgres).expect("a statement");
        assert_eq!(
            postgres.sql,
            "INSERT INTO s (id, state, was) VALUES ($1::text, CAST($2::text AS jsonb) ->> 'a', $1::text) -- :type"
        );
        assert_eq!(postgres.parameters, [Parameter::Resource, Parameter::Body]);
        let sqlite = Statement::read(sql, Dialect::Sqlite).expect("a statement");
        assert_eq!(sqlite.sql, "INSERT INTO s (id, state, was) VALUES (?1, ?2 ->> 'a', ?1) -- :type");
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_do() {
        for (sql, said) in [
            ("", "is empty"),
            ("-- nothing", "is empty"),
            ("COMMIT", "begins with COMMIT"),
            ("begin; delete from t", "begins with begin"),
            ("SAVEPOINT x", "begins with SAVEPOINT"),
            ("DROP TABLE t", "begins with DROP"),
            ("PRAGMA synchronous = off", "begins with PRAGMA"),
            ("DELETE FROM t; DELETE FROM u", "more than one statement"),
            ("DELETE FROM t WHERE id = :ressource", ":ressource, which is none of"),
            ("DELETE FROM t WHERE id = $1", "only named ones"),
            ("DELETE FROM t WHERE id = 'x", "without its end"),
        ] {
            for dialect in [Dialect::Postgres, Dialect::Sqlite] {
                let why = Statement::read(sql, dialect).expect_err(sql);
                assert!(why.contains(said), "{sql}: {why}");
            }
        }
    }

    #[test]
    fn a_setup_makes_things_and_may_run_again() {
        for dialect in [Dialect::Postgres, Dialect::Sqlite] {
            let read = |sql| read_setup(sql, dialect);
            for sql in ["CREATE TABLE IF NOT EXISTS t (id TEXT);", "create index if not exists i on t (id)"] {
                assert_eq!(read(sql).as_deref(), Ok(sql));
            }
            for (sql, said) in [
                ("CREATE TABLE t (id TEXT)", "IF NOT EXISTS"),
                ("DROP TABLE IF EXISTS t", "begin with CREATE"),
                ("CREATE TABLE IF NOT EXISTS t AS SELECT :id", "a parameter"),
                ("CREATE TABLE IF NOT EXISTS t (a INT); DROP TABLE u", "more than one"),
            ] {
                assert!(read(sql).expect_err(sql).contains(said), "{sql}");
            }
        }
    }

    #[test]
    fn the_tables_of_the_gate_are_not_written_to() {
        for sql in [
            "DELETE FROM tidegate.events",
            "UPDATE \"tidegate\".resources SET rev = 0",
            "INSERT INTO tidegate . holds VALUES (1)",
        ] {
            assert!(Statement::read(sql, Dialect::Postgres).expect_err(sql).contains("own"), "{sql}");
        }
        for sql in [
            "DELETE FROM events",
            "INSERT INTO main.keys_0 VALUES (1)",
            "REPLACE INTO \"Resources\" VALUES (1)",
            "UPDATE holds SET x = 1",
        ] {
            assert!(Statement::read(sql, Dialect::Sqlite).expect_err(sql).contains("own"), "{sql}");
        }
        for sql in
            ["INSERT INTO my_events SELECT :id", "UPDATE t SET events = events + 1", "SELECT * FROM tidegate_events"]
        {
            for dialect in [Dialect::Postgres, Dialect::Sqlite] {
                Statement::read(sql, dialect).expect(sql);
            }
        }
    }
}
