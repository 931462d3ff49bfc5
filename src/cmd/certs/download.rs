//! `edgecert certs download`: a record's chain and key as files. The key goes into a file of its owner and nowhere else.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

use super::super::service::refused;
use super::write::{self, NotWritten, Part};
use super::{Service, decided};
use crate::api::Download;
use crate::bundle::{Bundle, Files};
use crate::cli::DownloadArgs;
use crate::clock;
use crate::error::{CommandError, ErrorKind};
use crate::report::{CertificateReport, CommandReport};
use crate::text::{self, rfc3339};

/// Refuses what would show a key, before anything is sent.
pub(super) fn check(args: &DownloadArgs) -> Result<(), CommandError> {
    if is_output(&args.out) && !args.cert_only {
        let message = "a private key is never printed; nothing was sent";
        return Err(decided(ErrorKind::Usage, message, "name a directory with --out, or pass --cert-only"));
    }
    Ok(())
}

fn is_output(out: &Path) -> bool {
    out == Path::new("-")
}

pub(super) async fn run(
    args: &DownloadArgs,
    service: &Service,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let id = args.id;
    let download = service.client.download(id).await.map_err(|failed| {
        let hint = "`edgecert certs list` shows the certificates of this account";
        refused(format!("certificate {id} cannot be downloaded; nothing was written"), &failed, hint)
    })?;
    report.body.set("cert", &download.json);
    let bundle = bundle(&download, args.cert_only);
    evaluate(&bundle, id, report);
    if is_output(&args.out) {
        return print(&bundle, id, report);
    }
    let name = write::safe_name(&[download.name.as_deref(), download.domain.as_deref()], id);
    let (cert, key) = (args.out.join(format!("{name}.crt")), args.out.join(format!("{name}.key")));
    let chain = without_keys(&download, &bundle, report)?;
    let mut parts = vec![Part::open(&cert, &chain)];
    let secret = download.key_pem.as_ref().filter(|_| !args.cert_only);
    parts.extend(secret.map(|secret| Part::secret(&key, secret)));
    write::all(&parts, &args.out, args.force).map_err(|error| explain(&error))?;
    let files = serde_json::json!({
        "cert": text::path(&cert),
        "key": secret.map(|_| text::path(&key)),
    });
    report.body.set("files", files);
    for part in &parts {
        let _ = writeln!(report.body.text, "wrote {}", text::path(part.path()));
    }
    if secret.is_none() && !args.cert_only {
        let message = format!(
            "the service gives no private key of certificate {id}; only {} was written",
            text::path(&cert)
        );
        return Err(decided(
            ErrorKind::Service,
            message,
            "pass --cert-only where the certificate alone will do",
        ));
    }
    Ok(())
}

/// The chain as the service sent it, or written refresh where a private key stands in it: everybody may read that file.
fn without_keys<'a>(
    download: &'a Download,
    bundle: &Bundle,
    report: &mut CommandReport,
) -> Result<Cow<'a, str>, CommandError> {
    if !download.cert_pem.contains("PRIVATE KEY") {
        return Ok(Cow::Borrowed(&download.cert_pem));
    }
    let found = "the service sent a private key among the certificates";
    let Ok(chain) = &bundle.chain else {
        let message = format!("{found}, which cannot be understood; nothing was written");
        return Err(decided(ErrorKind::Protocol, message, "report it to the service's support"));
    };
    report.warnings.push(format!("{found}; it was left out of the certificate's file"));
    Ok(Cow::Owned(chain.pem()))
}

fn bundle(download: &Download, cert_only: bool) -> Bundle {
    let key = download.key_pem.as_ref().filter(|_| !cert_only);
    let files = Files { cert: "cert_pem".into(), issuers: None, key: key.map(|_| "key_pem".into()) };
    let key = key.map(|key| key.expose().as_bytes());
    Bundle::from_bytes(&files, download.cert_pem.as_bytes(), None, key)
}

/// Tells of pairing and expiry.
fn evaluate(bundle: &Bundle, id: u64, report: &mut CommandReport) {
    let chain = match &bundle.chain {
        Ok(chain) => chain,
        Err(diagnostics) => {
            let found: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.found.as_str()).collect();
            report.warnings.push(format!("the chain of certificate {id} holds {}", found.join("; ")));
            return;
        }
    };
    let leaf = &chain.leaf;
    report.body.set("certificate", CertificateReport::new(chain));
    let (now, not_after) = (clock::now(), rfc3339(leaf.not_after));
    if now > leaf.not_after {
        report.warnings.push(format!("certificate {id} expired at {not_after}"));
    }
    let names: Vec<String> = leaf.names().iter().map(|name| text::sanitize(name)).collect();
    let paired = match &bundle.key {
        None => None,
        Some(Ok(key)) => {
            let paired = key.pairs_with(&leaf.public_key);
            if !paired {
                report.warnings.push(format!("the private key of certificate {id} does not belong to it"));
            }
            Some(paired)
        }
        Some(Err(diagnostic)) => {
            report
                .warnings
                .push(format!("the service sent as private key of certificate {id} {}", diagnostic.found));
            Some(false)
        }
    };
    report.body.set("paired", paired);
    let left = text::humanize(leaf.not_after - now);
    let until = if now > leaf.not_after { format!("expired {left} ago") } else { format!("{left} left") };
    let pairing = match paired {
        Some(true) => "; key and certificate are a pair",
        Some(false) => "; key and certificate are NOT a pair",
        None => "",
    };
    let _ = writeln!(
        report.body.text,
        "certificate {id}: {}, until {not_after} ({until}){pairing}",
        text::list(&names)
    );
}

/// The chain alone, written refresh: whatever else stood around it stays out of the terminal.
fn print(bundle: &Bundle, id: u64, report: &mut CommandReport) -> Result<(), CommandError> {
    let Ok(chain) = &bundle.chain else {
        let message = format!("certificate {id} cannot be printed: its chain cannot be understood");
        return Err(decided(
            ErrorKind::Protocol,
            message,
            "write it into a directory with --out DIR and look at it",
        ));
    };
    report.body.text = chain.pem();
    report.body.is_product = true;
    Ok(())
}

fn explain(error: &NotWritten) -> CommandError {
    match error {
        NotWritten::Exists(_) => decided(
            ErrorKind::Refused,
            format!("{error}; nothing was written"),
            "pass --force to replace it, or name another directory",
        ),
        NotWritten::Io { .. } => decided(
            ErrorKind::NoInput,
            error.to_string(),
            "check the directory, its permissions and its free space",
        ),
    }
}
