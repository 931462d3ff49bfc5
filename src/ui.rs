//! The terminal: output, diagnostics, the confirmation prompt, progress and the log. Only this file and `main.rs`
//! print.

mod progress_line;

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

use crate::env::Env;
use crate::error::{CommandError, ErrorKind, Result};
use crate::file;
use crate::progress::Phase;
use crate::report::{Report, Style, error_lines, warning_line};
use crate::text::ascii;

/// Standard output and standard error of a run: format and styles.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    /// Print JSON instead of text.
    json: bool,
    stdout: Style,
    stderr: Style,
    shows_progress: bool,
}

impl Ui {
    /// Begins a run: detects what standard output and standard error can display.
    pub fn new(json: bool, env: &Env) -> Self {
        let (stdout, stderr) = (style(&io::stdout(), env), style(&io::stderr(), env));
        let shows_progress = io::stderr().is_terminal() && !is_dumb(env);
        Self { json, stdout, stderr, shows_progress }
    }

    /// The style of standard output.
    pub fn style(&self) -> Style {
        self.stdout
    }

    /// The columns of standard output; `None` if it is not a terminal, or if they are unknown.
    pub fn width(&self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|width| *width > 0)
    }

    /// Reserves standard output for the first thread that calls this. Any other thread blocks until the process exits.
    pub fn claim_output(&self) {
        static OWNER: OnceLock<ThreadId> = OnceLock::new();
        let this = thread::current().id();
        while *OWNER.get_or_init(|| this) != this {
            thread::park();
        }
    }

    /// Shows progress on standard error if that is a terminal.
    pub fn show_progress(&self, phase: Phase) {
        if self.shows_progress {
            progress_line::show(phase);
        }
    }

    /// Prints the warnings, the report and the errors, in this order: what to do is last.
    pub fn print_report(&self, report: &Report) -> Result<()> {
        progress_line::erase();
        report.warnings.iter().for_each(|warning| self.warn(warning));
        let text = if self.json { report.to_json() + "\n" } else { report.to_text(self.stdout) };
        let printed = self.print(&text);
        self.print_to_stderr(&error_lines(report.errors(), self.stderr));
        printed
    }

    /// Prints text to standard output. A pipe that its reader has closed is not an error.
    pub fn print(&self, text: &str) -> Result<()> {
        match write(io::stdout(), &encode(text, self.stdout)) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let message = format_args!("cannot write standard output: {}", file::reason(&error));
                let hint =
                    "the output is incomplete; free some space or redirect it, then run the command again";
                Err(CommandError::new(ErrorKind::NoInput, message).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Prints an error, and returns its exit code.
    pub fn fail(&self, error: CommandError) -> u8 {
        let exit_code = error.kind().exit_code();
        self.print_to_stderr(&error_lines(&[error], self.stderr));
        exit_code
    }

    /// Prints text to standard error.
    pub fn print_to_stderr(&self, text: &str) {
        let _ = write(io::stderr(), &encode(text, self.stderr));
    }

    /// Prints one warning.
    pub fn warn(&self, warning: &str) {
        self.print_to_stderr(&warning_line(warning, self.stderr));
    }

    /// Whether the user can be asked a question.
    pub fn is_interactive(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks for confirmation. Any answer but `y` or `yes` means no.
    pub fn confirm(&self, question: &str) -> bool {
        self.print_to_stderr(&format!("edgecert: {question} [y/N] "));
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    }

    /// Starts logging to standard error: warnings, with `-v` also steps, with `-vv` everything.
    pub fn start_log(&self, verbosity: u8) {
        let level = match verbosity {
            0 => log::LevelFilter::Warn,
            1 => log::LevelFilter::Info,
            _ => log::LevelFilter::Trace,
        };
        if log::set_logger(Box::leak(Box::new(*self))).is_ok() {
            log::set_max_level(level);
        }
    }
}

fn style(stream: &impl IsTerminal, env: &Env) -> Style {
    let is_terminal = stream.is_terminal();
    let colour = is_terminal && env.raw("NO_COLOR").is_none() && !is_dumb(env);
    Style { colour, unicode: is_terminal && is_utf8(env) }
}

/// Whether the terminal does not support escape sequences.
fn is_dumb(env: &Env) -> bool {
    env.raw("TERM").is_some_and(|term| term == "dumb")
}

/// Whether the locale's character set is UTF-8.
fn is_utf8(env: &Env) -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| env.raw(name));
    let locale = locale.map(|locale| locale.to_string_lossy().to_lowercase()).unwrap_or_default();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Restricts text to what a stream can display: ASCII, unless it is a terminal with UTF-8. certbot, for one, exits 1 if
/// its locale cannot decode the output of a hook.
fn encode(text: &str, style: Style) -> Cow<'_, str> {
    if style.unicode { text.into() } else { ascii(text) }
}

/// Writes and flushes the text. Errors of standard error are ignored: there is nowhere left to report them.
fn write(mut stream: impl io::Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush())
}

impl log::Log for Ui {
    /// Drops the messages of libraries.
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("edgecert")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            progress_line::write_above(&encode(&format!("edgecert: {}\n", record.args()), self.stderr));
        }
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locale_decides_about_unicode() {
        let rows: [(&[(&str, &str)], bool); 7] = [
            (&[], false),
            (&[("LANG", "C.UTF-8")], true),
            (&[("LANG", "de_DE.utf8")], true),
            (&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")], false),
            (&[("LANG", "C"), ("LC_CTYPE", "C.UTF-8")], true),
            (&[("LANG", "en_US.UTF-8"), ("LC_ALL", "")], true),
            (&[("LANG", "de_DE.ISO-8859-1")], false),
        ];
        for (variables, expected) in rows {
            assert_eq!(is_utf8(&variables.iter().copied().collect()), expected, "{variables:?}");
        }
    }
}
