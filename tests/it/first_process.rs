//! Signals to the first process of a container, which has no default action for them.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::harness::{edgecert, require_root};

#[test]
fn signals_end_first_process() {
    require_root();
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        // It waits for the response to its request.
        let service = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}", service.local_addr().unwrap());
        let mut hook = edgecert().under(&["unshare", "--pid", "--fork", "--kill-child"]);
        hook = hook.args(["sites", "list", "--timeout", "60"]).env("EDGECERT_BASE_URL", base_url);
        hook = hook.env("EDGECERT_API_KEY", "key");
        let mut unshare = hook.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (mut connection, _) = service.accept().unwrap();
        connection.read_exact(&mut [0]).unwrap();

        let id = unshare.id();
        let first = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {first}")]).status().unwrap();
        assert!(sent.success());
        assert_eq!(unshare.wait().unwrap().code(), Some(code), "SIG{signal}");
    }
}
