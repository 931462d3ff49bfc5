//! Runs the hook on a terminal: a pseudo-terminal from `script`, as wide as a test asks for.

use std::process::{Command, Stdio};

use super::{Hook, require};

/// What a terminal showed, and the exit code.
pub(crate) struct Shown {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Hook {
    /// The command that runs the hook on a terminal with UTF-8 and this many columns. A variable of the hook overrides
    /// those of the terminal, such as `TERM`.
    pub(crate) fn on_terminal(&mut self, columns: usize) -> Command {
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap());
        let command = self.command();
        let words: Vec<String> =
            std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect();
        let line = format!("stty cols {columns} rows 50; exec {}", words.join(" "));
        require("script", "bsdutils");
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_clear();
        script.env("TERM", "xterm").env("LANG", "C.UTF-8").env("SHELL", "/bin/sh");
        script.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.current_dir(command.get_current_dir().unwrap());
        script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        script
    }

    /// Runs the hook on a terminal with UTF-8 and this many columns.
    pub(crate) fn shows_on_terminal(mut self, columns: usize) -> Shown {
        let output = self.on_terminal(columns).output().unwrap();
        let text = String::from_utf8(output.stdout).expect("output is UTF-8").replace("\r\n", "\n");
        Shown { code: output.status.code().unwrap(), text }
    }
}

/// What remains on the screen of a terminal after it was sent this text. Only what progress lines need is understood:
/// carriage returns, moves up, and erasing a line.
pub(crate) fn screen(text: &str) -> String {
    let (mut lines, mut row, mut column) = (vec![Vec::new()], 0, 0);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => {
                (row, column) = (row + 1, 0);
                lines.resize(lines.len().max(row + 1), Vec::new());
            }
            '\u{1b}' => {
                assert_eq!(rest.next(), Some('['), "only control sequences are understood");
                let mut sequence = String::new();
                while !sequence.ends_with(|c: char| c.is_ascii_alphabetic()) {
                    sequence.push(rest.next().expect("a control sequence ends"));
                }
                match sequence.as_str() {
                    "2K" | "K" => lines[row].clear(),
                    "1A" => row = row.saturating_sub(1),
                    "1B" => row += 1,
                    colour if colour.ends_with('m') => {}
                    other => panic!("{other:?} is not understood"),
                }
            }
            c => {
                let line: &mut Vec<char> = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
    }
    let lines: Vec<String> =
        lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned()).collect();
    lines.join("\n")
}
