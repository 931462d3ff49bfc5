//! What came of a run: one value that becomes text for people or the JSON object that design and scripts rely on.

mod answer;
mod table;
mod text;

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;

use crate::bundle::Chain;
use crate::cert::Certificate;
use crate::check::{Finding, Status};
use crate::error::{Diagnostic, ErrorKind, Failure};
use crate::outcome::Outcome;
use crate::plan::Step;
use crate::source::{Client, Source};
use crate::text::rfc3339;

pub(crate) use self::answer::Answer;
pub(crate) use self::table::{Cell, Table};
pub(crate) use self::text::{Style, diagnostics, finding_line, warning};

/// Version of the JSON object; raised when a field changes its meaning or goes away.
const VERSION: u8 = 1;

/// The result of one command.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    version: u8,
    command: &'static str,
    ok: bool,
    exit_code: u8,
    pub(crate) source: Option<SourceReport>,
    pub(crate) certificate: Option<CertificateReport>,
    pub(crate) checks: Vec<Finding>,
    pub(crate) uploads: Vec<UploadReport>,
    pub(crate) sites: Vec<SiteReport>,
    /// What would be done, where that was the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<Vec<Step>>,
    pub(crate) warnings: Vec<String>,
    error: Option<String>,
    /// The same as `error`, each sentence with its hint; for people.
    #[serde(skip)]
    diagnostics: Vec<Diagnostic>,
    /// Why it failed.
    #[serde(skip)]
    kind: Option<ErrorKind>,
}

/// Whose certificate it is and where.
#[derive(Debug, Serialize)]
pub(crate) struct SourceReport {
    client: Client,
    cert: String,
    key: Option<String>,
}

/// The leaf.
#[derive(Debug, Serialize)]
pub(crate) struct CertificateReport {
    pub(crate) fingerprint: String,
    pub(crate) names: Vec<String>,
    #[serde(with = "rfc3339")]
    not_before: OffsetDateTime,
    #[serde(with = "rfc3339")]
    not_after: OffsetDateTime,
    key_type: String,
    issuer: String,
    chain_length: usize,
}

/// One upload.
#[derive(Debug, Serialize)]
pub(crate) struct UploadReport {
    pub(crate) domain: String,
    pub(crate) ok: bool,
    pub(crate) id: Option<u64>,
    pub(crate) created: Option<bool>,
    #[serde(serialize_with = "rfc3339::option::serialize")]
    pub(crate) not_after: Option<OffsetDateTime>,
    pub(crate) key_match: Option<String>,
    /// As the service sent it.
    pub(crate) bound_sites: Value,
    pub(crate) attempts: u32,
    pub(crate) error: Option<String>,
}

/// The verdict on one covered site.
#[derive(Debug, Serialize)]
pub(crate) struct SiteReport {
    /// `null` where no listing was made.
    pub(crate) id: Option<u64>,
    pub(crate) domain: String,
    pub(crate) cert_id_before: Option<u64>,
    pub(crate) cert_id: Option<u64>,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
    /// `null` where no handshake was tried.
    pub(crate) edge: Option<EdgeReport>,
    /// Host name of its edge, for later handshakes.
    #[serde(skip)]
    pub(crate) cname: Option<String>,
}

/// What the edge of a site showed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct EdgeReport {
    /// Addresses that showed the new leaf.
    pub(crate) served: usize,
    /// Addresses that were asked.
    pub(crate) addresses: usize,
}

impl Report {
    pub(crate) fn new(command: &'static str) -> Self {
        Self {
            version: VERSION,
            command,
            ok: true,
            exit_code: 0,
            source: None,
            certificate: None,
            checks: Vec::new(),
            uploads: Vec::new(),
            sites: Vec::new(),
            plan: None,
            warnings: Vec::new(),
            error: None,
            diagnostics: Vec::new(),
            kind: None,
        }
    }

    /// Records that the run failed. What it achieved before stays in the report.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.ok = false;
        self.kind = Some(failure.kind);
        self.exit_code = failure.kind.exit_code();
        self.error = Some(failure.message());
        self.diagnostics = failure.diagnostics;
    }

    /// Records another failure beside those that are known; the most severe decides.
    pub(crate) fn add(&mut self, kind: ErrorKind, diagnostic: Diagnostic) {
        let kinds = self.kind.into_iter().chain([kind]);
        let kind = ErrorKind::most_severe(kinds).unwrap_or(kind);
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        diagnostics.push(diagnostic);
        self.fail(Failure { kind, diagnostics });
    }

    /// Records the findings; warnings among them are also said apart.
    pub(crate) fn add_findings(&mut self, findings: &[Finding]) {
        self.checks = findings.to_vec();
        self.warnings
            .extend(findings.iter().filter(|finding| finding.status == Status::Warn).map(Finding::sentence));
    }

    pub(crate) fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    pub(crate) fn kind(&self) -> Option<ErrorKind> {
        self.kind
    }

    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    pub(crate) fn command(&self) -> &'static str {
        self.command
    }

    /// The JSON object; its lines stay short, because lego stops reading at 64 KiB.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .unwrap_or_else(|_| format!(r#"{{"version":{VERSION},"ok":false,"exit_code":70}}"#))
    }

    /// The lines for standard output.
    pub(crate) fn to_text(&self, style: Style) -> String {
        text::report(self, style)
    }
}

impl SourceReport {
    pub(crate) fn new(source: &Source) -> Self {
        let shown = |path: &std::path::PathBuf| crate::text::path(path);
        Self {
            client: source.client,
            cert: shown(&source.files.cert),
            key: source.files.key.as_ref().map(shown),
        }
    }
}

impl CertificateReport {
    pub(crate) fn new(chain: &Chain) -> Self {
        let leaf: &Certificate = &chain.leaf;
        Self {
            fingerprint: leaf.fingerprint(),
            names: leaf.names(),
            not_before: leaf.not_before,
            not_after: leaf.not_after,
            key_type: leaf.public_key.key_type().to_string(),
            issuer: leaf.issuer.text.clone(),
            chain_length: chain.length(),
        }
    }
}
