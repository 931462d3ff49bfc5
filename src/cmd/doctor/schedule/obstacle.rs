//! What keeps a scheduled command from running.

use std::path::Path;

use crate::cmd::doctor::calls::Program;
use crate::cmd::doctor::host::{Host, file_name};
use crate::error::shell_word;
use crate::text;

/// Why a scheduled command does not run, or runs without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cmd::doctor) enum Obstacle {
    /// The timer is enabled, but there is no unit of this name, or it is masked.
    NoUnit(String),
    /// systemd does not run this host.
    NoSystemd,
    /// No cron daemon is installed.
    NoCron,
    /// The last line of the crontab has no line feed.
    NoLineFeed,
    /// There is no executable at this path.
    NoProgram(String),
    /// The program is in none of these directories.
    NotInPath { program: String, path: String },
}

impl Obstacle {
    /// Completes a sentence that begins with the file of the schedule.
    pub(in crate::cmd::doctor) fn reason(&self) -> String {
        match self {
            Self::NoUnit(name) => {
                format!("starts {}, which is missing or masked", text::sanitize(name))
            }
            Self::NoSystemd => "has no effect, because systemd is not running here".into(),
            Self::NoCron => "has no effect, because no cron daemon is installed".into(),
            Self::NoLineFeed => "does not end with a newline, so cron ignores it".into(),
            Self::NoProgram(program) => {
                format!("runs {}, which does not exist or is not executable", text::sanitize(program))
            }
            Self::NotInPath { program, path } => {
                let (program, path) = (text::sanitize(program), text::sanitize(path));
                format!("runs {program} without a path, and does not find it in its PATH {path}")
            }
        }
    }

    /// How to remove it.
    pub(in crate::cmd::doctor) fn remedy(&self, host: &Host<'_>) -> String {
        match self {
            Self::NoUnit(name) => format!("install {}, or disable the timer", text::sanitize(name)),
            Self::NoSystemd => "use cron on hosts without systemd".into(),
            Self::NoCron => "install a cron daemon, for example with `apt install cron`".into(),
            Self::NoLineFeed => "add a newline at its end".into(),
            Self::NoProgram(program) => {
                let program = text::sanitize(program);
                if Path::new(&program).is_absolute()
                    && file_name(Path::new(&program)) == Program::Edgecert.name()
                {
                    return install(&host.own_program(), Path::new(&program));
                }
                format!("install {program}, or correct its path")
            }
            Self::NotInPath { program, .. } => {
                format!("use the absolute path of {}, or set PATH there", text::sanitize(program))
            }
        }
    }
}

/// How to install the program where it is expected.
pub(in crate::cmd::doctor) fn install(program: &Path, target: &Path) -> String {
    let [program, target] = [program, target].map(|path| shell_word(&text::path(path)));
    format!("run `install -m 755 {program} {target}`")
}
