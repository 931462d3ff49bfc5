//! Runs the examples of the reference; those of the help are run in `help`.

use crate::help::{commands, run_example};
use crate::tidy::read;

#[test]
fn examples_of_the_reference_work() {
    let reference = read("hooks/README.md");
    let section = reference.split("\n## Certificates and sites\n").nth(1).unwrap();
    let block = section.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    for command in commands().iter().filter(|command| ["certs", "sites"].contains(&command[0].as_str())) {
        assert!(block.contains(&format!("edgecert {}", command.join(" "))), "{command:?}");
    }
    block.lines().for_each(run_example);
}
