//! Hooks that are recognised by their variables: certbot, acme.sh and lego.

use std::path::{Path, PathBuf};

use super::{AcmeClient, Source};
use crate::bundle::{self, Files};
use crate::env::Env;
use crate::file;

/// The lineages that the variables name. Those of acme.sh have names that other programs use, too, so without its
/// `Le_Domain` they count only if there are no others.
pub(super) fn detect(env: &Env) -> Vec<Source> {
    let acme_sh = acme_sh(env);
    let (named, nameless) = if env.raw("Le_Domain").is_some() { (acme_sh, None) } else { (None, acme_sh) };
    let sources: Vec<Source> = [certbot(env), named, lego(env)].into_iter().flatten().collect();
    if sources.is_empty() { nameless.into_iter().collect() } else { sources }
}

/// Whether this is a post hook of certbot, which runs once per run and is not passed the renewed lineages.
///
/// From 4.2 on, it sets `FAILED_DOMAINS` for post hooks and for nothing else, even if no renewal failed. A
/// `RENEWED_LINEAGE` beside it is left over from the last deploy hook of the run.
pub(crate) fn is_certbot_post_hook(env: &Env) -> bool {
    let is_certbot =
        env.has("FAILED_DOMAINS") || env.raw("RENEWED_DOMAINS").is_some() && certbot(env).is_none();
    is_certbot && acme_sh(env).is_none() && lego(env).is_none()
}

/// certbot's deploy hook: a directory of four links.
fn certbot(env: &Env) -> Option<Source> {
    let lineage = env.path("RENEWED_LINEAGE")?;
    Some(Source::in_directory(AcmeClient::Certbot, &lineage, "fullchain.pem", "privkey.pem"))
}

/// acme.sh's `--reloadcmd`.
fn acme_sh(env: &Env) -> Option<Source> {
    let key = Some(env.path("CERT_KEY_PATH")?);
    let leaf = env.path("CERT_PATH");
    let is_fresh = |path: &PathBuf| !leaf.as_ref().is_some_and(|leaf| is_stale(path, leaf));
    let files = match env.path("CERT_FULLCHAIN_PATH").filter(is_fresh) {
        Some(cert) => Files { cert, issuers: None, key },
        None => Files { cert: leaf?, issuers: env.path("CA_CERT_PATH"), key },
    };
    Some(Source::new(AcmeClient::AcmeSh, files).with_acme_directory(env, "ACME_DIRECTORY"))
}

/// lego's hook, version 5 or 4.
fn lego(env: &Env) -> Option<Source> {
    let files = ["LEGO_HOOK_", "LEGO_"].iter().find_map(|prefix| {
        let path = |name: &str| env.path(&format!("{prefix}{name}"));
        let (cert, key) = (path("CERT_PATH")?, path("CERT_KEY_PATH")?);
        Some(Files { cert, issuers: path("ISSUER_CERT_PATH"), key: Some(key) })
    })?;
    Some(Source::new(AcmeClient::Lego, files).with_acme_directory(env, "LEGO_HOOK_ACCOUNT_SERVER"))
}

/// Whether a full chain is missing or lacks the leaf in the other file. acme.sh rewrites the full chain only if the CA
/// sent one, so it may be that of an earlier certificate.
pub(super) fn is_stale(full_chain: &Path, leaf: &Path) -> bool {
    let text = |path: &Path| file::read_text(path, bundle::MAX_BYTES, file::default_deadline());
    let Ok(leaf) = text(leaf) else { return false };
    !text(full_chain).is_ok_and(|full_chain| full_chain.contains(leaf.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(variables: &[(&str, &str)]) -> Vec<(AcmeClient, Files)> {
        let env = variables.iter().copied().collect();
        detect(&env).into_iter().map(|source| (source.client, source.files)).collect()
    }

    fn found(variables: &[(&str, &str)]) -> Option<(AcmeClient, Files)> {
        let mut all = all(variables);
        assert!(all.len() < 2, "{all:?}");
        all.pop()
    }

    /// Variables, and what is found.
    type Row = (&'static [(&'static str, &'static str)], AcmeClient, Files);

    #[test]
    fn each_client_is_recognised_by_its_variables() {
        let files = |cert: &str, issuers: Option<&str>, key: &str| Files {
            cert: cert.into(),
            issuers: issuers.map(Into::into),
            key: Some(key.into()),
        };
        let rows: [Row; 5] = [
            (
                &[("RENEWED_LINEAGE", "/l/a"), ("RENEWED_DOMAINS", "a b")],
                AcmeClient::Certbot,
                files("/l/a/fullchain.pem", None, "/l/a/privkey.pem"),
            ),
            (
                &[("CERT_KEY_PATH", "/k"), ("CERT_FULLCHAIN_PATH", "/f"), ("Le_Domain", "a")],
                AcmeClient::AcmeSh,
                files("/f", None, "/k"),
            ),
            (
                &[("CERT_KEY_PATH", "/k"), ("CERT_PATH", "/c"), ("CA_CERT_PATH", "/ca")],
                AcmeClient::AcmeSh,
                files("/c", Some("/ca"), "/k"),
            ),
            (
                &[("LEGO_CERT_PATH", "c"), ("LEGO_CERT_KEY_PATH", "k")],
                AcmeClient::Lego,
                files("c", None, "k"),
            ),
            (
                &[
                    ("LEGO_HOOK_CERT_PATH", "c"),
                    ("LEGO_HOOK_CERT_KEY_PATH", "k"),
                    ("LEGO_HOOK_ISSUER_CERT_PATH", "i"),
                ],
                AcmeClient::Lego,
                files("c", Some("i"), "k"),
            ),
        ];
        for (variables, client, files) in rows {
            assert_eq!(found(variables), Some((client, files)), "{variables:?}");
        }
    }

    #[test]
    fn variables_name_the_acme_directory() {
        let acme_sh = [("CERT_KEY_PATH", "/k"), ("CERT_FULLCHAIN_PATH", "/f"), ("ACME_DIRECTORY", "URL")];
        let lego = [
            ("LEGO_HOOK_CERT_PATH", "c"),
            ("LEGO_HOOK_CERT_KEY_PATH", "k"),
            ("LEGO_HOOK_ACCOUNT_SERVER", "URL"),
        ];
        for variables in [&[("Le_Domain", "a"), acme_sh[0], acme_sh[1], acme_sh[2]][..], &lego] {
            let sources = detect(&variables.iter().copied().collect());
            let directories: Vec<_> = sources.iter().map(Source::acme_directory).collect();
            assert_eq!(directories, [Some("URL".to_owned())], "{variables:?}");
        }
    }

    #[test]
    fn variables_of_several_clients_are_all_found() {
        let certbot = ("RENEWED_LINEAGE", "/l/a");
        let acme_sh = [("CERT_KEY_PATH", "/k"), ("CERT_PATH", "/c"), ("Le_Domain", "a")];
        let lego = [("LEGO_CERT_PATH", "c"), ("LEGO_CERT_KEY_PATH", "k")];
        let clients = |variables: &[(&str, &str)]| -> Vec<AcmeClient> {
            all(variables).into_iter().map(|(client, _)| client).collect()
        };
        assert_eq!(clients(&[certbot, lego[0], lego[1]]), [AcmeClient::Certbot, AcmeClient::Lego]);
        assert_eq!(
            clients(&[certbot, acme_sh[0], acme_sh[1], acme_sh[2]]),
            [AcmeClient::Certbot, AcmeClient::AcmeSh]
        );
        assert_eq!(
            clients(&[certbot, acme_sh[0], acme_sh[1]]),
            [AcmeClient::Certbot],
            "Le_Domain is missing"
        );
        assert_eq!(clients(&[lego[0], lego[1], acme_sh[0], acme_sh[1]]), [AcmeClient::Lego]);
    }

    #[test]
    fn post_hook_of_certbot_is_recognised() {
        let (renewed, failed) = (("RENEWED_DOMAINS", "a b"), ("FAILED_DOMAINS", "c"));
        let (lineage, none_failed) = (("RENEWED_LINEAGE", "/l/a"), ("FAILED_DOMAINS", ""));
        let rows: [(&[(&str, &str)], bool); 12] = [
            (&[renewed, none_failed], true),
            (&[("RENEWED_DOMAINS", ""), failed], true),
            // A failed `certonly`.
            (&[("RENEWED_DOMAINS", ""), none_failed], true),
            (&[renewed, failed, lineage], true),
            (&[renewed, none_failed, lineage], true),
            (&[renewed], true),
            (&[renewed, ("RENEWED_LINEAGE", "")], true),
            (&[renewed, lineage], false),
            (&[("RENEWED_DOMAINS", "")], false),
            (&[], false),
            (&[failed, ("LEGO_CERT_PATH", "c"), ("LEGO_CERT_KEY_PATH", "k")], false),
            (&[renewed, ("CERT_KEY_PATH", "/k"), ("CERT_PATH", "/c")], false),
        ];
        for (variables, expected) in rows {
            let env = variables.iter().copied().collect();
            assert_eq!(is_certbot_post_hook(&env), expected, "{variables:?}");
        }
    }

    #[test]
    fn incomplete_variables_are_not_a_hook() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("RENEWED_LINEAGE", "")]), None, "an empty variable counts as unset");
        assert_eq!(found(&[("CERT_KEY_PATH", "/k")]), None, "a key without a certificate");
    }
}
