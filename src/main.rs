//! The `edgecert` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    edgecert::app::main()
}
