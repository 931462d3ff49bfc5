//! Faults to inject into API requests, and which of them are valid.

mod pattern;
mod queue;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use queue::Faults;

/// A fault, the requests it matches, and how often it applies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// `METHOD /path`. A `*` matches any method, one path segment or, as the last segment, all that follow;
    /// the last segment may also be a prefix and a `*`. A lone `*` matches every request.
    #[serde(rename = "match")]
    pub pattern: String,
    /// What to do with the request.
    #[serde(rename = "do")]
    pub action: FaultAction,
    /// For `status`: the status code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// For `status`: response headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// For `status`: the body. A string is sent as it is, any other value as JSON, null as an empty body.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// For `truncate`: how many bytes of the body to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// For `stall`: how long to delay the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// How many requests the fault applies to.
    #[serde(default = "once")]
    pub times: u32,
}

/// What a fault does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// Responds with a given status without executing the request.
    Status,
    /// Closes the connection without executing the request.
    CloseBefore,
    /// Executes and commits the request, then closes the connection without responding.
    CloseAfter,
    /// Executes the request, then closes the connection in the middle of the response body.
    Truncate,
    /// Executes the request and delays the response.
    Stall,
}

impl FaultAction {
    /// Returns the JSON value of `do`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::CloseBefore => "close_before",
            Self::CloseAfter => "close_after",
            Self::Truncate => "truncate",
            Self::Stall => "stall",
        }
    }
}

impl Fault {
    /// Creates a fault that responds with a status without executing the request.
    pub fn status(pattern: &str, status: u16) -> Self {
        Self { status: Some(status), ..Self::new(pattern, FaultAction::Status) }
    }

    /// Creates a fault that closes the connection without executing the request.
    pub fn close_before(pattern: &str) -> Self {
        Self::new(pattern, FaultAction::CloseBefore)
    }

    /// Creates a fault that executes the request and closes the connection without responding.
    pub fn close_after(pattern: &str) -> Self {
        Self::new(pattern, FaultAction::CloseAfter)
    }

    /// Creates a fault that executes the request and closes the connection after `bytes` bytes of the body.
    pub fn truncate(pattern: &str, bytes: usize) -> Self {
        Self { bytes: Some(bytes), ..Self::new(pattern, FaultAction::Truncate) }
    }

    /// Creates a fault that executes the request and responds after `seconds` seconds.
    pub fn stall(pattern: &str, seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..Self::new(pattern, FaultAction::Stall) }
    }

    /// Sets how many requests the fault applies to; the default is 1.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// Adds a response header to a `status` fault.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets the response body of a `status` fault. A string is sent as it is.
    #[must_use]
    pub fn body(self, body: impl Into<Value>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// Returns why the fault cannot apply, can never match, or would not do what it says.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_valid_header = |(name, value): (&String, &String)| {
            name.parse::<http::HeaderName>().is_ok() && value.parse::<http::HeaderValue>().is_ok()
        };
        let problem = match self.action {
            FaultAction::Status if !self.status.is_some_and(|code| (200..=599).contains(&code)) => {
                "status needs a status from 200 to 599"
            }
            FaultAction::Truncate if self.bytes.is_none() => "truncate needs bytes",
            FaultAction::Stall if !self.seconds.is_some_and(|s| (0.0..=86_400.0).contains(&s)) => {
                "stall needs seconds from 0 to 86400"
            }
            _ if !self.headers.iter().all(is_valid_header) => "headers has an invalid name or value",
            _ if self.times == 0 => "times must be at least 1",
            _ => {
                self.check_parameters()?;
                return pattern::check(&self.pattern);
            }
        };
        Err(problem.to_owned())
    }

    /// Rejects parameters of another `do`, which would be ignored.
    fn check_parameters(&self) -> Result<(), String> {
        use FaultAction::{Stall, Status, Truncate};
        let parameters = [
            ("status", self.status.is_some(), Status),
            ("headers", !self.headers.is_empty(), Status),
            ("body", !self.body.is_null(), Status),
            ("bytes", self.bytes.is_some(), Truncate),
            ("seconds", self.seconds.is_some(), Stall),
        ];
        match parameters.iter().find(|(_, is_given, action)| *is_given && *action != self.action) {
            Some((name, ..)) => Err(format!("{name} has no effect on {}", self.action.as_str())),
            None => Ok(()),
        }
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        pattern::matches(&self.pattern, method, path)
    }

    fn new(pattern: &str, action: FaultAction) -> Self {
        Self {
            pattern: pattern.to_owned(),
            action,
            status: None,
            headers: BTreeMap::new(),
            body: Value::Null,
            bytes: None,
            seconds: None,
            times: 1,
        }
    }
}

fn once() -> u32 {
    1
}
