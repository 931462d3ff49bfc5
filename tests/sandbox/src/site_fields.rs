//! The writable fields of a site (section 2.3) with their types. What the document does not show the type of
//! is taken as it comes and given back as it was.

use serde_json::{Map, Value, json};

/// A writable field other than `domain`, `cert_id` and `package_id`, which refer to something.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Bool,
    Text,
    Port,
    Protocol,
    Origins,
    Array,
    Object,
    /// Its type is not shown.
    Any,
}

/// Every writable field that stands for itself.
pub(crate) const FIELDS: &[Field] = &[
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

/// The field of this name, if a request may set it.
pub(crate) fn find(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// What a site has that was created with a domain alone; `shape` adds the fields whose types are not shown.
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
    /// The value to store, or what is wrong with the one given.
    pub(crate) fn accept(&self, value: &Value) -> Result<Value, String> {
        let wanted = match self.kind {
            Kind::Any => return Ok(value.clone()),
            Kind::Origins => return self.origins(value),
            Kind::Port => return self.port(value),
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
        Err(format!("{} must be {wanted}", self.name))
    }

    fn port(&self, value: &Value) -> Result<Value, String> {
        let port = whole(value).filter(|port| (1..=65535).contains(port));
        port.map(Value::from).ok_or_else(|| format!("{} must be a port number", self.name))
    }

    fn origins(&self, value: &Value) -> Result<Value, String> {
        let wrong = || format!("{} must be an array of objects with addr, weight and status", self.name);
        let elements = value.as_array().ok_or_else(wrong)?;
        let origins: Option<Vec<Value>> = elements.iter().map(origin).collect();
        origins.map(Value::Array).ok_or_else(wrong)
    }
}

/// An origin needs its address; weight and status have defaults.
fn origin(value: &Value) -> Option<Value> {
    let object = value.as_object()?;
    let addr = object.get("addr")?.as_str().filter(|addr| !addr.is_empty())?;
    let weight = object.get("weight").map_or(Some(json!(1)), |w| w.is_number().then(|| w.clone()))?;
    let status = object.get("status").map_or(Some(true), Value::as_bool)?;
    Some(json!({ "addr": addr, "weight": weight, "status": status }))
}

/// A whole number, also one that is written as `1.0`, which JSON takes for the same.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    let written_as_float = || value.as_f64().filter(|number| number.fract() == 0.0);
    value.as_i64().or_else(|| format!("{:.0}", written_as_float()?).parse().ok())
}
