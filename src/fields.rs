//! The fields of a site that the API document names (sections 2.3 and 4.7), with their types where it shows them.
//!
//! The document's list is incomplete, so unknown fields are allowed.

use serde_json::Value;

use crate::text::sanitize;

/// Type of a field's value.
#[derive(Clone, Copy)]
pub(crate) struct FieldType {
    /// Description of a valid value, for "must be …".
    expected: &'static str,
    accepts: fn(&Value) -> bool,
}

const BOOL: FieldType = FieldType { expected: "true or false", accepts: Value::is_boolean };
const PORT: FieldType = FieldType {
    expected: "a port number",
    accepts: |value| value.as_u64().is_some_and(|port| (1..=65535).contains(&port)),
};
/// ID of another object; `null` means none.
const REFERENCE: FieldType =
    FieldType { expected: "a number, or null for none", accepts: |value| value.is_u64() || value.is_null() };
const PROTOCOL: FieldType = FieldType {
    expected: "one of http, https and follow",
    accepts: |value| value.as_str().is_some_and(|word| ["http", "https", "follow"].contains(&word)),
};
const ORIGINS: FieldType = FieldType {
    expected: r#"a list of origins like {"addr":"192.0.2.10","weight":1,"status":true}"#,
    accepts: |value| value.as_array().is_some_and(|origins| origins.iter().all(is_origin)),
};
const ARRAY: FieldType = FieldType { expected: "a list ([...])", accepts: Value::is_array };
const OBJECT: FieldType = FieldType { expected: "an object ({...})", accepts: Value::is_object };
/// The document does not show the type.
const ANY: FieldType = FieldType { expected: "anything", accepts: |_| true };

/// The names of the known fields that a request may set, with their types.
pub(crate) const FIELDS: [(&str, FieldType); 20] = [
    ("access_control", OBJECT),
    ("cache_rules", ARRAY),
    ("cert_id", REFERENCE),
    ("force_https", BOOL),
    ("hsts", ANY),
    ("http2", BOOL),
    ("http3", BOOL),
    ("http_enabled", BOOL),
    ("https_enabled", BOOL),
    ("load_balance", ANY),
    ("ocsp_stapling", ANY),
    ("origin_http_port", PORT),
    ("origin_https_port", PORT),
    ("origin_protocol", PROTOCOL),
    ("origins", ORIGINS),
    ("package_id", REFERENCE),
    ("remark", ANY),
    ("security", OBJECT),
    ("ssl_ciphers", ANY),
    ("ssl_mode", ANY),
];

/// Fields that the service ignores silently (section 4.6, rules 1 and 2), and the site's ID.
const READ_ONLY: [(&str, &str); 3] = [
    ("cname", "the system assigns it"),
    ("id", "the system assigns it"),
    ("user_id", "a site belongs to the account of the API key"),
];

/// Checks a field before it is sent: whether it can be set, and can have this value. Unknown fields pass.
pub(crate) fn check(name: &str, value: &Value) -> Result<(), String> {
    if let Some((_, reason)) = READ_ONLY.iter().find(|(field, _)| *field == name) {
        return Err(format!("{name} cannot be set: {reason}"));
    }
    match FIELDS.iter().find(|(field, _)| *field == name) {
        Some((_, FieldType { expected, accepts })) if !accepts(value) => {
            Err(format!("{name} must be {expected}, not {}", sanitize(&value.to_string())))
        }
        _ => Ok(()),
    }
}

/// Suggests the known field that an unknown one probably misspells: at most one edit away.
pub(crate) fn suggestion(name: &str) -> Option<&'static str> {
    if FIELDS.iter().any(|(field, _)| *field == name) {
        return None;
    }
    let folded = name.to_lowercase().replace('-', "_");
    let mut known = FIELDS.iter().map(|(field, _)| *field);
    known.find(|field| strsim::osa_distance(&folded, field) <= 1)
}

/// Whether a value is an origin (section 2.3); the service has defaults for weight and status.
fn is_origin(value: &Value) -> bool {
    let is_valid = |name: &str, is_of_type: fn(&Value) -> bool| value.get(name).is_none_or(is_of_type);
    value.get("addr").and_then(Value::as_str).is_some_and(|addr| !addr.is_empty())
        && is_valid("weight", Value::is_number)
        && is_valid("status", Value::is_boolean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn known_fields_have_types_and_unknown_pass() {
        let rows = [
            ("force_https", json!(true), true),
            ("force_https", json!("yes"), false),
            ("origin_protocol", json!("follow"), true),
            ("origin_protocol", json!("ftp"), false),
            ("origin_http_port", json!(8080), true),
            ("origin_http_port", json!(0), false),
            ("origin_https_port", json!(65536), false),
            ("origin_https_port", json!("443"), false),
            ("cert_id", json!(5), true),
            ("cert_id", json!(null), true),
            ("cert_id", json!(-5), false),
            ("origins", json!([{"addr": "192.0.2.1", "weight": 1, "status": true}]), true),
            ("origins", json!([{"addr": "192.0.2.1"}]), true),
            ("origins", json!([{"addr": "192.0.2.1", "weight": "1"}]), false),
            ("origins", json!(["192.0.2.1"]), false),
            ("cache_rules", json!([]), true),
            ("cache_rules", json!({}), false),
            ("security", json!({}), true),
            ("access_control", json!([]), false),
            ("hsts", json!({"max_age": 1}), true),
            ("cname", json!("x.example"), false),
            ("user_id", json!(2), false),
            ("something_new", json!(1), true),
        ];
        for (name, value, passes) in rows {
            assert_eq!(check(name, &value).is_ok(), passes, "{name}={value}");
        }
    }

    #[test]
    fn error_names_expected_and_found_value() {
        let wrong = |name, value: Value| check(name, &value).unwrap_err();
        assert_eq!(wrong("force_https", json!("yes")), r#"force_https must be true or false, not "yes""#);
        assert_eq!(
            wrong("origin_protocol", json!(1)),
            "origin_protocol must be one of http, https and follow, not 1"
        );
        assert_eq!(wrong("cname", json!("a")), "cname cannot be set: the system assigns it");
    }

    #[test]
    fn suggestion_is_one_edit_away() {
        let rows = [
            ("force_http", Some("force_https")),
            ("fource_https", Some("force_https")),
            ("froce_https", Some("force_https")),
            ("Force-HTTPS", Some("force_https")),
            ("orgins", Some("origins")),
            ("force_https", None),
            ("forcehtps", None),
            ("waf", None),
        ];
        for (name, suggested) in rows {
            assert_eq!(suggestion(name), suggested, "{name}");
        }
    }
}
