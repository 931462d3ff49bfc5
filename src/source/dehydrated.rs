//! dehydrated's hook contract: one program for all operations; the first argument names the operation.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{AcmeClient, Source};
use crate::bundle::Files;

/// A call by dehydrated.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// `deploy_cert`: a certificate was renewed.
    Deploy(Source),
    /// `unchanged_cert`: a daily check found the certificate unchanged. dehydrated never repeats a failed
    /// `deploy_cert`, so failures are retried then.
    Unchanged(Source),
    /// An operation that is not for a deploy hook; it succeeds without output.
    Other,
    /// `deploy_cert` or `unchanged_cert` without its arguments.
    Incomplete,
}

/// The other operations. An unknown word is a usage error, so that a typo never succeeds silently.
const OTHER_OPERATIONS: [&str; 10] = [
    "deploy_challenge",
    "clean_challenge",
    "invalid_challenge",
    "request_failure",
    "sync_cert",
    "deploy_ocsp",
    "generate_csr",
    "startup_hook",
    "exit_hook",
    "this_hookscript_is_broken__dehydrated_is_working_fine__please_ignore_unknown_hooks_in_your_script",
];

/// Recognises a call by dehydrated from the arguments after the program's name.
pub(crate) fn call(arguments: &[OsString]) -> Option<Call> {
    let (operation, rest) = arguments.split_first()?;
    match operation.to_str()? {
        "deploy_cert" => Some(certificate(rest).map_or(Call::Incomplete, Call::Deploy)),
        "unchanged_cert" => Some(certificate(rest).map_or(Call::Incomplete, Call::Unchanged)),
        other if OTHER_OPERATIONS.contains(&other) => Some(Call::Other),
        _ => None,
    }
}

/// `DOMAIN KEYFILE CERTFILE FULLCHAINFILE CHAINFILE [TIMESTAMP]`
fn certificate(arguments: &[OsString]) -> Option<Source> {
    let [_domain, key, cert, full_chain, chain, ..] = arguments else { return None };
    let (cert, issuers) =
        if full_chain.is_empty() { (cert, Some(PathBuf::from(chain))) } else { (full_chain, None) };
    let files = Files { cert: cert.into(), issuers, key: Some(key.into()) };
    Some(Source::new(AcmeClient::Dehydrated, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(words: &[&str]) -> Option<Call> {
        call(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn operations_are_recognised() {
        let expected = Files { cert: "full".into(), issuers: None, key: Some("key".into()) };
        for operation in ["deploy_cert", "unchanged_cert"] {
            match called(&[operation, "a", "key", "cert", "full", "chain", "1"]) {
                Some(Call::Deploy(source) | Call::Unchanged(source)) => assert_eq!(source.files, expected),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(called(&["deploy_cert", "a", "key"]), Some(Call::Incomplete));
        for operation in OTHER_OPERATIONS {
            assert_eq!(called(&[operation, "x"]), Some(Call::Other));
        }
        for word in ["deploy_crt", "deploy", "check", "--json", ""] {
            assert_eq!(called(&[word]), None, "{word}");
        }
        assert_eq!(called(&[]), None);
    }
}
