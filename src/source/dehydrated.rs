//! dehydrated's hook contract: one program for every operation, told apart by the first argument.

use std::ffi::OsString;
use std::path::PathBuf;

use super::{Client, Source};
use crate::bundle::Files;

/// What dehydrated asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// A new certificate (`deploy_cert`).
    Deploy(Source),
    /// The daily look at an unchanged one (`unchanged_cert`): dehydrated never repeats a failed `deploy_cert`, so what is
    /// open is finished then.
    Tick(Source),
    /// An operation that is not for a deploy hook; answered with silence and success.
    Nothing,
    /// `deploy_cert` or `unchanged_cert` without its arguments.
    Incomplete,
}

/// Operations that are not ours. An unknown word is none of them, so that a typing mistake is never a silent success.
const OTHERS: [&str; 10] = [
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

/// Recognises a call by dehydrated; `arguments` are those behind the program's name.
pub(crate) fn call(arguments: &[OsString]) -> Option<Call> {
    let (operation, rest) = arguments.split_first()?;
    match operation.to_str()? {
        "deploy_cert" => Some(certificate(rest).map_or(Call::Incomplete, Call::Deploy)),
        "unchanged_cert" => Some(certificate(rest).map_or(Call::Incomplete, Call::Tick)),
        other if OTHERS.contains(&other) => Some(Call::Nothing),
        _ => None,
    }
}

/// `DOMAIN KEYFILE CERTFILE FULLCHAINFILE CHAINFILE [TIMESTAMP]`
fn certificate(arguments: &[OsString]) -> Option<Source> {
    let [_domain, key, cert, full_chain, chain, ..] = arguments else {
        return None;
    };
    let (cert, issuers) =
        if full_chain.is_empty() { (cert, Some(PathBuf::from(chain))) } else { (full_chain, None) };
    let files = Files { cert: cert.into(), issuers, key: Some(key.into()) };
    Some(Source::new(Client::Dehydrated, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(words: &[&str]) -> Option<Call> {
        call(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn operations_are_told_apart() {
        let wanted = Files { cert: "full".into(), issuers: None, key: Some("key".into()) };
        for operation in ["deploy_cert", "unchanged_cert"] {
            match called(&[operation, "a", "key", "cert", "full", "chain", "1"]) {
                Some(Call::Deploy(source) | Call::Tick(source)) => assert_eq!(source.files, wanted),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(called(&["deploy_cert", "a", "key"]), Some(Call::Incomplete));
        for operation in OTHERS {
            assert_eq!(called(&[operation, "x"]), Some(Call::Nothing));
        }
        for word in ["deploy_crt", "deploy", "check", "--json", ""] {
            assert_eq!(called(&[word]), None, "{word}");
        }
        assert_eq!(called(&[]), None);
    }
}
