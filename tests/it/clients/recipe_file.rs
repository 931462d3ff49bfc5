//! The files of `hooks/`, and the commands and cron lines in the comments at their head.

use std::fs;
use std::path::{Path, PathBuf};

/// The path of a recipe.
pub(super) fn recipe(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(name)
}

pub(super) fn recipe_text(name: &str) -> String {
    fs::read_to_string(recipe(name)).unwrap()
}

/// The commands at the head of a recipe, which its comments indent.
pub(super) fn commands(name: &str) -> Vec<String> {
    recipe_text(name).lines().filter_map(|line| line.strip_prefix("#   ")).map(str::to_owned).collect()
}

/// The only command at the head of a recipe that begins with this text.
#[track_caller]
pub(super) fn command(name: &str, begin: &str) -> String {
    let mut commands = commands(name).into_iter().filter(|command| command.starts_with(begin));
    match (commands.next(), commands.next()) {
        (Some(command), None) => command,
        (first, second) => panic!("hooks/{name}: not one command {begin}: {first:?} {second:?}"),
    }
}

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
