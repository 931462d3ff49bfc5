//! The result of a command that deploys nothing: an object of its own for scripts, and its text for people.

use serde::Serialize;
use serde_json::{Map, Value};

use super::VERSION;
use crate::error::{Diagnostic, Failure};

/// What a command has to say. The JSON object has the fields that all commands share, and its own between them.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    version: u8,
    command: &'static str,
    ok: bool,
    exit_code: u8,
    #[serde(flatten)]
    fields: Map<String, Value>,
    pub(crate) warnings: Vec<String>,
    error: Option<String>,
    /// The same as `error`, each sentence with its hint; for people.
    #[serde(skip)]
    diagnostics: Vec<Diagnostic>,
    /// For standard output, where no JSON is asked for.
    #[serde(skip)]
    pub(crate) text: String,
    /// Whether the text is what the command is for, as a file that is made from it, and not a report of what was done.
    #[serde(skip)]
    pub(crate) is_product: bool,
}

impl Answer {
    pub(crate) fn new(command: &'static str) -> Self {
        Self {
            version: VERSION,
            command,
            ok: true,
            exit_code: 0,
            fields: Map::new(),
            warnings: Vec::new(),
            error: None,
            diagnostics: Vec::new(),
            text: String::new(),
            is_product: false,
        }
    }

    /// Adds a field of this command to the JSON object.
    pub(crate) fn set(&mut self, field: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.fields.insert(field.to_owned(), value);
    }

    /// Records that the command failed. What it said before stays.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.end_with(failure.kind.exit_code());
        self.error = Some(failure.message());
        self.diagnostics = failure.diagnostics;
    }

    /// Ends with this exit code, whatever it means to the caller of this command.
    pub(crate) fn end_with(&mut self, exit_code: u8) {
        self.ok = exit_code == 0;
        self.exit_code = exit_code;
    }

    pub(crate) fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
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
}
