//! Finds the object or the list in a response. The API document does not show what wraps it, so any sensible wrapper
//! is accepted.

use serde_json::{Map, Value};

/// Keys under which a single object may be.
const OBJECT_KEYS: [&str; 7] = ["site", "cert", "certificate", "data", "result", "item", "record"];

/// The kind of elements in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListKind {
    /// The name of an element in messages.
    pub(super) noun: &'static str,
    /// Keys under which such a list may be.
    keys: &'static [&'static str],
}

impl ListKind {
    pub(super) const RECORDS: Self =
        Self { noun: "certificate", keys: &["certs", "certificates", "list", "items", "results", "data"] };
    /// Only the first key is documented.
    pub(super) const SITES: Self =
        Self { noun: "site", keys: &["sites", "list", "items", "results", "data"] };
}

/// Reads an object: `json` itself, or one in a known wrapper.
pub(super) fn find_object<'a, T>(json: &'a Value, read: &dyn Fn(&'a Value) -> Option<T>) -> Option<T> {
    let mut inner = OBJECT_KEYS.iter().filter_map(|key| json.get(*key));
    read(json).or_else(|| inner.find_map(|value| find_object(value, read)))
}

/// The list in a response, an array or `null`: bare, under a known key, or under any other key if no list is found
/// there.
pub(super) fn find_list(json: &Value, kind: ListKind) -> Option<&Value> {
    let map = match json {
        Value::Null | Value::Array(_) => return Some(json),
        Value::Object(map) => map,
        _ => return None,
    };
    let known = || kind.keys.iter().filter_map(|key| map.get(*key));
    let direct = known().find(|value| value.is_array()).or_else(|| known().find(|value| value.is_null()));
    let mut objects = map.values().filter(|value| value.is_object());
    let nested = || objects.find_map(|value| find_list(value, kind));
    direct.or_else(nested).or_else(|| largest_array(map, kind))
}

/// The largest array of objects. In the outline of a list, an array is its index, its length and its first element.
fn largest_array(map: &Map<String, Value>, kind: ListKind) -> Option<&Value> {
    let is_list = |value: &&Value| match value.as_array().map(Vec::as_slice) {
        Some([.., last]) => last.is_object(),
        // Not for sites, whose key is documented.
        Some([]) => kind == ListKind::RECORDS,
        None => false,
    };
    map.values().filter(is_list).max_by_key(|value| value.get(1).and_then(Value::as_u64))
}

/// Whether a value is neither null, false, zero nor empty.
pub(super) fn is_set(value: &Value) -> bool {
    !["null", "false", "0", "\"\"", "[]", "{}"].contains(&value.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn find(json: &Value) -> Option<&Value> {
        find_object(json, &|value| value.get("domain").map(|_| value))
    }

    #[test]
    fn object_is_found_in_any_wrapper() {
        let bare = json!({"id": 10, "domain": "a.example"});
        for json in [
            bare.clone(),
            json!({"site": bare}),
            json!({"ok": true, "site": bare, "meta": {"id": 1, "ok": false, "domain": "other.invalid"}}),
            json!({"data": {"site": bare}}),
        ] {
            assert_eq!(find(&json), Some(&bare), "{json}");
        }
        for json in [json!([]), json!({"meta": bare}), json!({"id": 10}), json!("x")] {
            assert!(find(&json).is_none(), "{json}");
        }
    }

    #[test]
    fn list_is_found_in_any_wrapper() {
        let record = json!({"id": 5});
        for json in [
            json!([record]),
            json!({"certs": [record], "total": 1}),
            json!({"ok": true, "data": {"items": [record]}, "warnings": []}),
            json!({"result": [record]}),
            json!({"data": {"result": {"list": [record]}}}),
            json!({"certs": [record], "packages": [{"id": 1}, {"id": 2}]}),
            json!({"ok": true, "found": [record], "codes": [1, 2]}),
            json!({"data": null, "certs": [record]}),
        ] {
            assert_eq!(find_list(&json, ListKind::RECORDS), Some(&json!([record])), "{json}");
        }
    }

    #[test]
    fn empty_lists_have_several_forms() {
        let (sites, records) = (ListKind::SITES, ListKind::RECORDS);
        for (json, kind, list) in [
            (json!([]), sites, Some(json!([]))),
            (json!(null), sites, Some(json!(null))),
            (json!({"certs": []}), records, Some(json!([]))),
            (json!({"sites": null, "total": 0}), sites, Some(json!(null))),
            (json!({"certs": [], "sites": [{"id": 5}]}), records, Some(json!([]))),
            (json!({"certs": null, "sites": [{"id": 5}]}), records, Some(json!(null))),
            (json!({"stored": []}), records, Some(json!([]))),
            (json!({"warnings": []}), sites, None),
            (json!("x"), records, None),
            (json!(1), records, None),
            (json!({"ok": true}), records, None),
        ] {
            assert_eq!(find_list(&json, kind), list.as_ref(), "{json}");
        }
    }
}
