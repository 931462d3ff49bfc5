//! What makes each test a sentence: a hook to call, a lineage to hand over, a sandbox to receive it.

mod hook;
mod lineage;
mod openssl;

pub(crate) use edgecert_sandbox::{Fault, Options, Sandbox, World};
pub(crate) use hook::{Hook, Outcome, edgecert, variable};
pub(crate) use lineage::{Lineage, authority, new_key};
pub(crate) use openssl::openssl;

/// A sandbox with these sites, none of which has a certificate.
pub(crate) fn sandbox(domains: &[&str]) -> Sandbox {
    sandbox_with(Options::default(), domains)
}

/// The same with options of its own.
pub(crate) fn sandbox_with(options: Options, domains: &[&str]) -> Sandbox {
    let sandbox = Sandbox::start(options).unwrap();
    for domain in domains {
        sandbox.add_site(domain);
    }
    sandbox
}

/// What was asked of the sandbox, as `METHOD /path`.
pub(crate) fn asked(sandbox: &Sandbox) -> Vec<String> {
    sandbox.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

/// How many uploads the sandbox was asked for.
pub(crate) fn uploads(sandbox: &Sandbox) -> usize {
    asked(sandbox).iter().filter(|request| *request == "POST /api/certs/upload").count()
}
