//! Pipes that never deliver: reading them ends with the run's deadline.

use super::Content::{PipeWithoutWriter, SilentPipe};
use super::check_output;
use crate::harness::{Lineage, at_once, edgecert};

#[test]
fn silent_pipe_obeys_the_deadline() {
    let rows = [
        ("--key", 66, "no end of file within 1 s"),
        ("--cert", 66, "no end of file within 1 s"),
        ("--api-key-file", 78, "no end of file within 1 s"),
        // Read later, when less time may be left.
        ("--ca-file", 78, "no end of file within "),
        ("--trust-anchors", 78, "no end of file within "),
    ];
    let lineage = Lineage::issued_for(&["a.example"]);
    at_once(rows, |(flag, code, message)| {
        for content in [PipeWithoutWriter, SilentPipe] {
            let hook = edgecert().env("EDGECERT_BASE_URL", "http://127.0.0.1:1").env("EDGECERT_API_KEY", "k");
            let pipe = content.create(hook.write_file("x", "").with_file_name("pipe"));
            let files = [("--cert", "fullchain.pem"), ("--key", "privkey.pem")];
            let files = files.into_iter().filter(|(other, _)| *other != flag);
            let hook = files
                .fold(hook.args(["--timeout", "1", flag]).args([&pipe.path]), |hook, (flag, name)| {
                    hook.args([flag]).args([lineage.file(name)])
                });
            let output = hook.run();
            check_output(flag, &output, code, message).unwrap();
            assert!(!output.stderr.contains("within 30"), "{flag}: {}", output.stderr);
        }
    });
}
