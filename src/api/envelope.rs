//! Finds the object or the list in a response. The API document does not show what wraps it, so any sensible wrapper
//! is accepted.

use serde_json::Value;

/// Keys under which a single object may be.
const OBJECT_KEYS: [&str; 7] = ["site", "cert", "certificate", "data", "result", "item", "record"];

/// Keys under which a list of records may be.
pub(super) const RECORD_LIST_KEYS: [&str; 6] = ["certs", "certificates", "list", "items", "results", "data"];

/// Keys under which a list of sites may be; the first is documented.
pub(super) const SITE_LIST_KEYS: [&str; 5] = ["sites", "list", "items", "results", "data"];

/// Maximum number of wrappers around an object.
const MAX_OBJECT_DEPTH: usize = 3;

/// Maximum number of wrappers around a list: `{"data":{"result":{"list":[…]}}}`.
const MAX_LIST_DEPTH: usize = 4;

/// The object for which `fits` holds: `json` itself, or one in a known wrapper.
pub(super) fn find_object<'a>(json: &'a Value, fits: &dyn Fn(&Value) -> bool) -> Option<&'a Value> {
    find_object_within(json, fits, MAX_OBJECT_DEPTH)
}

fn find_object_within<'a>(json: &'a Value, fits: &dyn Fn(&Value) -> bool, depth: usize) -> Option<&'a Value> {
    if fits(json) {
        return Some(json);
    }
    let inner = OBJECT_KEYS.iter().filter_map(|key| json.get(*key));
    inner.filter(|_| depth > 0).find_map(|value| find_object_within(value, fits, depth - 1))
}

/// The list in a response: bare, under one of `keys`, or under any other key if no list is found there. `null` is an
/// empty list.
pub(super) fn find_list<'a>(json: &'a Value, keys: &[&str]) -> Option<&'a [Value]> {
    find_list_within(json, keys, MAX_LIST_DEPTH)
}

fn find_list_within<'a>(json: &'a Value, keys: &[&str], depth: usize) -> Option<&'a [Value]> {
    let map = match json {
        Value::Null => return Some(&[]),
        Value::Array(items) => return Some(items),
        Value::Object(map) => map,
        _ => return None,
    };
    let known = keys.iter().filter_map(|key| map.get(*key));
    match known.into_iter().find(|value| value.is_null() || value.is_array()) {
        Some(Value::Array(items)) => return Some(items),
        Some(_) => return Some(&[]),
        None => {}
    }
    let mut objects = map.values().filter(|value| value.is_object() && depth > 0);
    let nested = objects.find_map(|value| find_list_within(value, keys, depth - 1));
    let is_list = |items: &&Vec<Value>| items.iter().all(Value::is_object);
    let largest = || map.values().filter_map(Value::as_array).filter(is_list).max_by_key(|items| items.len());
    nested.or_else(|| largest().map(Vec::as_slice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn find(json: &Value) -> Option<&Value> {
        find_object(json, &|value| value.get("domain").is_some())
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
        ] {
            assert_eq!(find_list(&json, &RECORD_LIST_KEYS), Some([record.clone()].as_slice()), "{json}");
        }
    }

    #[test]
    fn empty_lists_have_several_forms() {
        for json in [
            json!([]),
            json!(null),
            json!({"certs": []}),
            json!({"certs": null, "total": 0}),
            json!({"certs": [], "sites": [{"id": 5}]}),
        ] {
            assert_eq!(find_list(&json, &RECORD_LIST_KEYS), Some([].as_slice()), "{json}");
        }
        for json in [json!("x"), json!(1), json!({"ok": true})] {
            assert_eq!(find_list(&json, &RECORD_LIST_KEYS), None, "{json}");
        }
    }
}
