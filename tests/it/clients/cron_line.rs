//! The cron line at the head of a script in `hooks/`.

use std::path::Path;

use super::recipe_file::commands;

/// The command of the cron line, which the script's comment splits into several lines, with this command for the installed
/// script.
#[track_caller]
pub(super) fn cron_command(script: &str, program: &str) -> String {
    let lines = commands(script);
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    let (begin, command) = words.split_at(6);
    assert_eq!(begin, ["17", "3", "*", "*", "*", "root"], "hooks/{script}");
    let (installed, arguments) = command.split_first().unwrap();
    assert_eq!(
        Path::new(installed),
        Path::new("/usr/local/bin").join(Path::new(script).file_name().unwrap())
    );
    format!("{program} {}", arguments.join(" "))
}
