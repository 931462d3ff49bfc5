//! Faults on demand. Each says which requests it strikes, what happens to them and how often; the first unspent
//! one that matches strikes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A fault that waits for its request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// `METHOD /path`; in the path `*` stands for one segment, at the end for all that follow. A lone `*` matches
    /// every request.
    #[serde(rename = "match")]
    pub pattern: String,
    /// What happens.
    #[serde(rename = "do")]
    pub action: FaultAction,
    /// For `status`: what is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// For `status`: headers of the answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// For `status`: the body; anything but a string is sent as JSON.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// For `truncate`: how much of the body is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// For `stall`: how long the answer waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// How many requests it strikes.
    #[serde(default = "once")]
    pub times: u32,
}

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// Answers with a status of its own; the request is not carried out.
    Status,
    /// Cuts the connection; the request is not carried out.
    CloseBefore,
    /// Carries the request out and commits it, then cuts the connection.
    CloseAfter,
    /// Carries the request out and cuts the connection within the answer's body.
    Truncate,
    /// Carries the request out and answers late.
    Stall,
}

impl FaultAction {
    /// Its name in `do`.
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
    /// Answers with this status instead.
    pub fn status(pattern: &str, status: u16) -> Self {
        Self { status: Some(status), ..Self::new(pattern, FaultAction::Status) }
    }

    /// Cuts the connection before the request is carried out.
    pub fn close_before(pattern: &str) -> Self {
        Self::new(pattern, FaultAction::CloseBefore)
    }

    /// Cuts the connection after the request was carried out.
    pub fn close_after(pattern: &str) -> Self {
        Self::new(pattern, FaultAction::CloseAfter)
    }

    /// Cuts the connection after so many bytes of the answer's body.
    pub fn truncate(pattern: &str, bytes: usize) -> Self {
        Self { bytes: Some(bytes), ..Self::new(pattern, FaultAction::Truncate) }
    }

    /// Answers after so many seconds.
    pub fn stall(pattern: &str, seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..Self::new(pattern, FaultAction::Stall) }
    }

    /// Strikes so many requests.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// Adds a header to the answer of `status`.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets the body of the answer of `status`; a string is sent as it is.
    #[must_use]
    pub fn body(self, body: impl Into<Value>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// What is missing or cannot be meant.
    pub(crate) fn check(&self) -> Result<(), String> {
        let header_fits = |(name, value): (&String, &String)| {
            name.parse::<http::HeaderName>().is_ok() && value.parse::<http::HeaderValue>().is_ok()
        };
        let missing = match self.action {
            FaultAction::Status if !self.status.is_some_and(|code| (200..=599).contains(&code)) => {
                "status needs a status from 200 to 599"
            }
            FaultAction::Truncate if self.bytes.is_none() => "truncate needs bytes",
            FaultAction::Stall if !self.seconds.is_some_and(|s| (0.0..=86_400.0).contains(&s)) => {
                "stall needs seconds"
            }
            _ if !self.headers.iter().all(header_fits) => {
                "headers has a name or value that HTTP does not allow"
            }
            _ if self.pattern != "*" && !self.pattern.contains(" /") => "match must be \"METHOD /path\"",
            _ => return Ok(()),
        };
        Err(missing.to_owned())
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

    fn strikes(&self, method: &str, path: &str) -> bool {
        if self.pattern == "*" {
            return true;
        }
        let Some((wanted_method, wanted_path)) = self.pattern.split_once(' ') else {
            return false;
        };
        (wanted_method == "*" || wanted_method.eq_ignore_ascii_case(method))
            && path_matches(wanted_path, path)
    }
}

/// The faults that wait.
#[derive(Default)]
pub(crate) struct Faults {
    waiting: Mutex<Vec<Fault>>,
    stream: Mutex<Option<Stream>>,
}

/// Faults that strike every other request, by chance and without end.
struct Stream {
    chance: fastrand::Rng,
    faults: Vec<Fault>,
}

impl Stream {
    fn take(&mut self, method: &str, path: &str) -> Option<Fault> {
        let fitting: Vec<&Fault> = self.faults.iter().filter(|fault| fault.strikes(method, path)).collect();
        let strikes = self.chance.bool();
        self.chance.choice(fitting).filter(|_| strikes).cloned()
    }
}

impl Faults {
    pub(crate) fn add(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend(faults);
    }

    /// From now on every other request is struck, the same ones for the same seed and order of requests.
    pub(crate) fn rain(&self, seed: u64, faults: impl IntoIterator<Item = Fault>) {
        let stream = Stream { chance: fastrand::Rng::with_seed(seed), faults: faults.into_iter().collect() };
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
    }

    pub(crate) fn list(&self) -> Vec<Fault> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn clear(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The fault for this request, one time less of it.
    pub(crate) fn take(&self, method: &str, path: &str) -> Option<Fault> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|fault| fault.times > 0);
        let Some(fault) = waiting.iter_mut().find(|fault| fault.strikes(method, path)) else {
            let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            return stream.as_mut().and_then(|stream| stream.take(method, path));
        };
        fault.times -= 1;
        Some(fault.clone())
    }
}

fn path_matches(wanted: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    let mut rest = wanted.split('/').peekable();
    while let Some(wanted) = rest.next() {
        let last = rest.peek().is_none();
        match segments.next() {
            Some(_) if wanted == "*" && last => return true,
            Some(segment) if wanted == "*" || wanted == segment => {}
            Some(segment) if last => {
                return wanted.strip_suffix('*').is_some_and(|prefix| segment.starts_with(prefix));
            }
            _ => return false,
        }
    }
    segments.next().is_none()
}

fn once() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_paths() {
        let rows = [
            ("POST /api/certs/upload", "POST", "/api/certs/upload", true),
            ("POST /api/certs/upload", "GET", "/api/certs/upload", false),
            ("POST /api/certs", "POST", "/api/certs/upload", false),
            ("GET /api/sites/*", "GET", "/api/sites/10", true),
            ("POST /api/sites/*/update", "POST", "/api/sites/10/update", true),
            ("POST /api/sites/*/update", "POST", "/api/sites/10/enable", false),
            ("* /api/*", "DELETE", "/api/sites/10", true),
            ("GET /api/cert*", "GET", "/api/certs", true),
            ("*", "GET", "/", true),
        ];
        for (pattern, method, path, expected) in rows {
            assert_eq!(
                Fault::close_before(pattern).strikes(method, path),
                expected,
                "{pattern} {method} {path}"
            );
        }
    }

    #[test]
    fn a_rain_of_faults_strikes_every_other_request() {
        let faults = Faults::default();
        faults.rain(7, [Fault::status("GET /a", 503), Fault::close_before("GET /a")]);
        let drawn: Vec<_> = (0..1000).map(|_| faults.take("GET", "/a").map(|fault| fault.action)).collect();
        let count = |action| drawn.iter().filter(|drawn| **drawn == action).count();
        assert!((400..600).contains(&count(None)), "{}", count(None));
        assert!(count(Some(FaultAction::Status)) > 150 && count(Some(FaultAction::CloseBefore)) > 150);
        assert_eq!(faults.take("GET", "/b"), None);
    }

    #[test]
    fn faults_are_spent_in_order() {
        let faults = Faults::default();
        faults.add([Fault::status("GET /a", 503).times(2), Fault::close_before("GET /a")]);
        let drawn: Vec<_> = (0..4).map(|_| faults.take("GET", "/a").map(|fault| fault.action)).collect();
        assert_eq!(
            drawn,
            [Some(FaultAction::Status), Some(FaultAction::Status), Some(FaultAction::CloseBefore), None]
        );
    }
}
