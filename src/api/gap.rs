//! Why a list of sites or records may be incomplete. The elements of such a list are used; an element that it lacks
//! may still exist.

use serde_json::Value;

use super::envelope::ListKind;
use super::json::Fields;
use super::response::reason;
use super::wire::domains;
use crate::names::Domain;
use crate::text::{count, sanitize};

/// A reason why a list may lack elements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Gap {
    /// `total` is above the number of elements.
    #[error("the service lists only {listed} of {}", count(usize::try_from(*total).unwrap_or(usize::MAX), kind.noun()))]
    Truncated { kind: ListKind, listed: usize, total: u64 },
    /// The response refers to another page.
    #[error("the service lists {} and refers to another page", count(*listed, kind.noun()))]
    Paged { kind: ListKind, listed: usize },
    #[error("the service sent null as its list of {kind}")]
    Null { kind: ListKind },
    /// A successful response that reports an error beside its list. `message` is free of secrets.
    #[error("the service reported an error with its list of {kind}: {message}")]
    Error { kind: ListKind, message: String },
    #[error("the service's list of {kind} has {} that cannot be read", count(*number, "element"))]
    Unreadable { kind: ListKind, number: usize, domains: UnreadableDomains },
}

/// The domains of elements that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnreadableDomains {
    /// The domains that can be read.
    known: Vec<Domain>,
    /// Whether the domain of any element cannot be read.
    has_unknown: bool,
}

/// Maximum depth of the objects that are searched for `total` and the like. Elements are not searched.
const MAX_DEPTH: usize = 4;

const TOTAL_FIELDS: [&str; 3] = ["total", "total_count", "totalCount"];
/// Non-empty if there is another page.
const NEXT_PAGE_FIELDS: [&str; 14] = [
    "has_more",
    "hasMore",
    "has_next",
    "hasNext",
    "next",
    "next_page",
    "nextPage",
    "next_cursor",
    "nextCursor",
    "next_page_token",
    "nextPageToken",
    "next_page_url",
    "nextPageUrl",
    "truncated",
];
/// The number of pages, of which only the first is read.
const PAGES_FIELDS: [&str; 5] = ["pages", "total_pages", "totalPages", "last_page", "lastPage"];

impl Gap {
    /// The gaps that a response shows apart from the elements of its list. `listed` is the number of its elements,
    /// `None` if the list is null.
    pub(super) fn of_response(json: &Value, listed: Option<usize>, kind: ListKind) -> Vec<Self> {
        let (is_null, listed) = (listed.is_none(), listed.unwrap_or_default());
        let total = find_all(json, &TOTAL_FIELDS).into_iter().filter_map(number).max();
        let pages = find_all(json, &PAGES_FIELDS).into_iter().filter_map(number).max();
        let has_pages = total.is_none() && pages.is_some_and(|pages| pages > 1);
        let has_more = has_pages || find_all(json, &NEXT_PAGE_FIELDS).into_iter().any(is_set);
        let message = reported_error(json).map(|error| {
            let message = reason(error).map_or_else(|| error.to_string(), str::to_owned);
            sanitize(&message)
        });
        let truncated = total.filter(|total| *total > listed as u64);
        let gaps = [
            truncated.map(|total| Self::Truncated { kind, listed, total }),
            (truncated.is_none() && has_more).then_some(Self::Paged { kind, listed }),
            // Some services write an empty list as `null`.
            (is_null && total != Some(0)).then_some(Self::Null { kind }),
            message.map(|message| Self::Error { kind, message }),
        ];
        gaps.into_iter().flatten().collect()
    }

    /// Whether the list may lack an element for a domain that meets the condition.
    pub(crate) fn may_hide(&self, is_relevant: impl Fn(&Domain) -> bool) -> bool {
        match self {
            Self::Unreadable { domains, .. } => domains.has_unknown || domains.known.iter().any(is_relevant),
            Self::Truncated { .. } | Self::Paged { .. } | Self::Null { .. } | Self::Error { .. } => true,
        }
    }
}

impl UnreadableDomains {
    /// Adds the domains of an element with these fields.
    pub(super) fn add(&mut self, fields: Option<&dyn Fields>) {
        let known = fields.map(domains).unwrap_or_default();
        let text = fields.and_then(|fields| fields.field("domain")).and_then(Value::as_str);
        let has_none = text.is_some_and(|text| text.trim().is_empty());
        self.has_unknown |= known.is_empty() && !has_none;
        self.known.extend(known);
    }
}

/// The values of fields with these names in `json` and the objects in it, but not in list elements.
fn find_all<'a>(json: &'a Value, names: &[&str]) -> Vec<&'a Value> {
    find_all_within(json, names, MAX_DEPTH)
}

fn find_all_within<'a>(json: &'a Value, names: &[&str], depth: usize) -> Vec<&'a Value> {
    let Some(fields) = json.as_object().filter(|_| depth > 0) else { return Vec::new() };
    let mut found: Vec<&Value> = names.iter().filter_map(|name| fields.get(*name)).collect();
    found.extend(fields.values().flat_map(|value| find_all_within(value, names, depth - 1)));
    found
}

/// The error that a successful response reports. Only wrappers count: other objects may have fields of the same
/// names.
fn reported_error(json: &Value) -> Option<&Value> {
    let fields = json.as_object()?;
    let error = ["error", "errors"].iter().filter_map(|name| fields.get(*name)).find(|error| is_set(error));
    let is_false = |name: &str| fields.get(name) == Some(&Value::Bool(false));
    let status = fields.get("status").and_then(Value::as_str).unwrap_or_default();
    let code = fields.get("code").and_then(Value::as_u64).unwrap_or_default();
    let is_failure = is_false("ok")
        || is_false("success")
        || ["error", "fail", "failed"].contains(&status)
        || (400..600).contains(&code)
        || (40_000..60_000).contains(&code);
    let wrapped = || ["data", "result"].iter().filter_map(|wrapper| fields.get(*wrapper));
    error.or_else(|| is_failure.then_some(json)).or_else(|| wrapped().find_map(reported_error))
}

/// Whether a value is neither null, false, zero nor empty.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_set) => *is_set,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// A number, or digits in a string.
fn number(value: &Value) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count; the cast saturates"
    )]
    let float = || value.as_f64().map(|number| number.ceil() as u64);
    value.as_u64().or_else(float).or_else(|| value.as_str()?.trim().parse().ok())
}
