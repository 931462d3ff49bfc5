//! The writable fields of a site and their types (section 2.3 of `edge-api.md`). A field whose type the
//! document does not show accepts any JSON value and returns it unchanged.

use serde_json::{Map, Value, json};

/// A writable field other than `domain`, `cert_id` and `package_id`, which need the database to validate.
pub(crate) struct Field {
    name: &'static str,
    kind: Kind,
}

/// The type of a field.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    Text,
    Port,
    Protocol,
    Origins,
    Array,
    Object,
    /// The document does not show the type.
    Any,
}

const FIELDS: &[Field] = &[
    Field { name: "origins", kind: Kind::Origins },
    Field { name: "origin_protocol", kind: Kind::Protocol },
    Field { name: "origin_http_port", kind: Kind::Port },
    Field { name: "origin_https_port", kind: Kind::Port },
    Field { name: "http_enabled", kind: Kind::Bool },
    Field { name: "https_enabled", kind: Kind::Bool },
    Field { name: "force_https", kind: Kind::Bool },
    Field { name: "http2", kind: Kind::Bool },
    Field { name: "http3", kind: Kind::Bool },
    Field { name: "ssl_mode", kind: Kind::Any },
    Field { name: "ssl_ciphers", kind: Kind::Any },
    Field { name: "hsts", kind: Kind::Any },
    Field { name: "ocsp_stapling", kind: Kind::Any },
    Field { name: "cache_rules", kind: Kind::Array },
    Field { name: "security", kind: Kind::Object },
    Field { name: "access_control", kind: Kind::Object },
    Field { name: "load_balance", kind: Kind::Any },
    Field { name: "remark", kind: Kind::Text },
];

/// Returns the field with this name, or `None` if a request may not set it.
pub(crate) fn find(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// Returns the settings of a site that was created with a domain only. The fields whose types are not shown
/// are missing here, because quirks decide their initial values.
pub(crate) fn defaults() -> Map<String, Value> {
    let fields = json!({
        "origins": [], "origin_protocol": "http", "origin_http_port": 80, "origin_https_port": 443,
        "http_enabled": true, "https_enabled": true, "force_https": false, "http2": true, "http3": false,
        "cache_rules": [], "security": {}, "access_control": {}, "load_balance": "weight", "remark": "",
    });
    match fields {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

impl Field {
    /// Checks a value and returns the form to store, or the reason for rejecting it.
    pub(crate) fn accept(&self, value: &Value) -> Result<Value, String> {
        let expected = match self.kind {
            Kind::Any => return Ok(value.clone()),
            Kind::Origins => return self.accept_origins(value),
            Kind::Port => return self.accept_port(value),
            Kind::Bool if value.is_boolean() => return Ok(value.clone()),
            Kind::Text if value.is_string() => return Ok(value.clone()),
            Kind::Array if value.is_array() => return Ok(value.clone()),
            Kind::Object if value.is_object() => return Ok(value.clone()),
            Kind::Protocol if matches!(value.as_str(), Some("http" | "https" | "follow")) => {
                return Ok(value.clone());
            }
            Kind::Bool => "a boolean",
            Kind::Text => "a string",
            Kind::Protocol => "one of http, https, follow",
            Kind::Array => "an array",
            Kind::Object => "an object",
        };
        Err(format!("{} must be {expected}", self.name))
    }

    fn accept_port(&self, value: &Value) -> Result<Value, String> {
        let port = as_integer(value).filter(|port| (1..=65535).contains(port));
        port.map(Value::from).ok_or_else(|| format!("{} must be a port number", self.name))
    }

    fn accept_origins(&self, value: &Value) -> Result<Value, String> {
        let invalid = || format!("{} must be an array of objects with addr, weight and status", self.name);
        let elements = value.as_array().ok_or_else(invalid)?;
        let origins: Option<Vec<Value>> = elements.iter().map(accept_origin).collect();
        origins.map(Value::Array).ok_or_else(invalid)
    }
}

/// Checks one element of `origins`. `addr` is required; `weight` and `status` have defaults.
fn accept_origin(value: &Value) -> Option<Value> {
    let object = value.as_object()?;
    let addr = object.get("addr")?.as_str().filter(|addr| !addr.is_empty())?;
    let weight = object.get("weight").map_or(Some(json!(1)), |w| w.is_number().then(|| w.clone()))?;
    let status = object.get("status").map_or(Some(true), Value::as_bool)?;
    Some(json!({ "addr": addr, "weight": weight, "status": status }))
}

/// Returns an integer, including one spelled `1.0`, which JSON does not distinguish from `1`.
pub(crate) fn as_integer(value: &Value) -> Option<i64> {
    let spelled_as_float = || value.as_f64().filter(|number| number.fract() == 0.0);
    value.as_i64().or_else(|| format!("{:.0}", spelled_as_float()?).parse().ok())
}
