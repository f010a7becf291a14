//! Fenced blocks of Markdown, and what is to be done with them.

/// Why a block of commands is not run.
pub(crate) const REASONS: [(&str, &str); 3] = [
    ("builds", "would build the project, or run all tests, from inside of a test"),
    ("containers", "needs an engine for containers"),
    ("measures", "takes long and the whole machine"),
];

/// What is to be done with a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Run,
    Serve,
    Write(String),
    Nothing,
}

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// Where it starts, from 1.
    pub(crate) line: usize,
    language: String,
    mark: String,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn action(&self) -> Result<Action, String> {
        let commands = ["console", "sh", "bash", "shell"].contains(&self.language.as_str());
        match (commands, self.mark.split_once('=').unwrap_or((&self.mark, ""))) {
            (true, ("run", "")) => Ok(Action::Run),
            (true, ("run", "server")) => Ok(Action::Serve),
            (true, ("skip", why)) if REASONS.iter().any(|(reason, _)| *reason == why) => Ok(Action::Nothing),
            (true, _) => {
                Err(format!("`{}` is none of run, run=server, skip={:?}", self.mark, REASONS.map(|(reason, _)| reason)))
            }
            (false, ("file", name)) if !name.is_empty() && !name.contains(['/', '\\']) => {
                Ok(Action::Write(name.into()))
            }
            (false, ("", "")) => Ok(Action::Nothing),
            (false, _) => Err(format!("`{}` is no mark of a block of {}", self.mark, self.language)),
        }
    }
}

pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(head), None) => {
                let (language, mark) = head.split_once(' ').unwrap_or((head, ""));
                let (language, mark) = (language.to_owned(), mark.trim().to_owned());
                open = Some(Block { line: index + 1, language, mark, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed: {open:?}");
    blocks
}

#[test]
fn marks_are_read_and_bad_ones_refused() {
    let action = |text: &str| blocks(text)[0].action();
    assert_eq!(action("```console run\n$ true\n```"), Ok(Action::Run));
    assert_eq!(action("```console run=server\n```"), Ok(Action::Serve));
    assert_eq!(action("```toml file=my.toml\n```"), Ok(Action::Write("my.toml".into())));
    assert_eq!(action("```rust\n```"), Ok(Action::Nothing));
    for bad in ["```sh\nls\n```", "```console skip\n```", "```console skip=boring\n```", "```toml file=../x\n```"] {
        assert!(action(bad).is_err(), "{bad}");
    }
}
