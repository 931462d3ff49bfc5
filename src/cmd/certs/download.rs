//! `edgecert certs download`: writes a record's chain and key to files. The key goes to a file of mode 0600 and nowhere
//! else.

use std::borrow::Cow;

use serde_json::json;

use super::write::{self, Part};
use crate::bundle::{Bundle, Chain, Files};
use crate::cli::DownloadArgs;
use crate::clock;
use crate::cmd::session::{Session, failed_or_refused};
use crate::context::Context;
use crate::error::{CommandError, ErrorKind, Result};
use crate::report::{CertificateReport, Report};
use crate::text::{self, people, rfc3339};

pub(super) async fn run(args: &DownloadArgs, context: &Context, report: &mut Report) -> Result<()> {
    if args.is_to_stdout() && !args.cert_only {
        let message = "a private key is never printed; nothing was sent";
        return Err(CommandError::new(ErrorKind::Usage, message)
            .hint("name a directory with --out, or pass --cert-only"));
    }
    let Session { client, report, .. } = Session::open(&args.service, context, report)?;
    let id = args.id;
    let download = client.download(id).await.map_err(|cause| {
        failed_or_refused(
            format_args!("cannot download certificate {id}; nothing was written"),
            &cause,
            "run `edgecert certs list` to see the certificates of this account",
        )
    })?;
    report.set("cert", &download.json);
    let secret = download.key_pem.as_ref().filter(|_| !args.cert_only);
    let files = Files { cert: "cert_pem".into(), issuers: None, key: secret.map(|_| "key_pem".into()) };
    let key = secret.map(|secret| secret.expose().as_bytes());
    let bundle = Bundle::from_bytes(&files, download.cert_pem.as_bytes(), None, key);
    // Everyone may read the file, so only the certificates are written if a private key is among them.
    let mut cert_pem = Cow::Borrowed(&*download.cert_pem);
    let has_key = cert_pem.contains("PRIVATE KEY");
    match &bundle.chain {
        Ok(chain) => {
            let description = describe(chain, &bundle, id, report);
            if args.is_to_stdout() {
                // Only the certificates, without other text that the service sent.
                report.push(chain.pem());
                return Ok(());
            }
            report.push(description);
            if has_key {
                let warning = "the service sent a private key among the certificates; it was omitted from the certificate file";
                report.warnings.push(warning.to_owned());
                cert_pem = chain.pem().into();
            }
        }
        Err(defects) => {
            let found: Vec<&str> = defects.iter().map(|defect| defect.found.as_str()).collect();
            report.warnings.push(format!("the chain of certificate {id} holds {}", found.join("; ")));
            if args.is_to_stdout() {
                let message = format_args!("certificate {id} cannot be printed: its chain cannot be parsed");
                return Err(CommandError::new(ErrorKind::Protocol, message)
                    .hint("write it to a directory with --out DIR and inspect it"));
            }
            if has_key {
                let message = "the service sent a private key among the certificates, and the chain cannot be parsed; nothing was written";
                let error = CommandError::new(ErrorKind::Protocol, message);
                return Err(error.hint("report it to the service's support"));
            }
        }
    }
    let name = write::safe_name(&["name", "domain"].map(|name| download.json.get(name)?.as_str()), id);
    let (cert, key) = (args.out.join(format!("{name}.crt")), args.out.join(format!("{name}.key")));
    let mut parts = vec![Part { path: cert.clone(), content: &cert_pem, mode: 0o644 }];
    parts.extend(secret.map(|secret| Part { path: key.clone(), content: secret.expose(), mode: 0o600 }));
    write::all(&parts, &args.out, args.force)?;
    let key_file = secret.map(|_| text::path(&key));
    report.set("files", json!({"cert": text::path(&cert), "key": key_file}));
    for part in &parts {
        report.push(format!("wrote {}", text::path(&part.path)));
    }
    if secret.is_none() && !args.cert_only {
        let message = format_args!(
            "the service returned no private key for certificate {id}; only {} was written",
            text::path(&cert)
        );
        return Err(CommandError::new(ErrorKind::Service, message)
            .hint("pass --cert-only if you need only the certificate"));
    }
    Ok(())
}

/// Reports names, expiry and pairing, and returns the line for them.
fn describe(chain: &Chain, bundle: &Bundle, id: u64, report: &mut Report) -> String {
    let (leaf, key) = (&chain.leaf, bundle.key.as_ref());
    report.set("certificate", CertificateReport::new(chain));
    let now = clock::now();
    if now > leaf.not_after {
        report.warnings.push(format!("certificate {id} expired at {}", rfc3339(leaf.not_after)));
    }
    let names: Vec<String> = leaf.names().iter().map(|name| text::sanitize(name)).collect();
    let is_paired = key.map(|key| key.as_ref().is_ok_and(|key| key.public_key == leaf.public_key));
    report.set("paired", is_paired);
    let pairing = match is_paired {
        None => "",
        Some(true) => "; key and certificate match",
        Some(false) => {
            let own = format!("the private key of certificate {id}");
            report.warnings.push(match key {
                Some(Err(defect)) => format!("instead of {own}, the service sent {}", defect.found),
                _ => format!("{own} does not belong to it"),
            });
            "; key and certificate do NOT match"
        }
    };
    let expiry = people::expiry(leaf.not_after, now);
    format!("certificate {id}: {}; {expiry}{pairing}", text::list(&names))
}
