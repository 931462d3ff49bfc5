//! The OpenAPI document of the API, served at `/openapi.json`. It is exact for quirk seed 0. Under any other
//! seed it leaves response statuses and bodies open, as `edge-api.md` does.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::quirks::Quirks;

/// The segment of a path that stands for a number.
pub(crate) const ID: &str = "{id}";

/// Method and path, summary, the schemas of request and response, and the statuses of errors besides 401.
type Operation = (&'static str, &'static str, Option<&'static str>, &'static str, &'static [u16]);

const OPERATIONS: [Operation; 11] = [
    ("GET /api/certs", "List the account's certificates", None, "CertList", &[]),
    ("POST /api/certs", "Add a certificate record", Some("NewCert"), "CreatedCert", &[400, 415]),
    (
        "POST /api/certs/upload",
        "Upload a certificate, replacing the domain's record",
        Some("Upload"),
        "Uploaded",
        &[400, 403, 415],
    ),
    ("GET /api/certs/{id}/download", "Get a certificate with its key", None, "Download", &[404]),
    ("GET /api/me/sites", "List the account's sites", None, "SiteList", &[]),
    ("POST /api/sites", "Create a site", Some("NewSite"), "SavedSite", &[400, 403, 409, 415]),
    ("GET /api/sites/{id}", "Get a site", None, "Site", &[404]),
    ("DELETE /api/sites/{id}", "Delete a site", None, "Ok", &[404]),
    (
        "POST /api/sites/{id}/update",
        "Update the given fields of a site",
        Some("SiteChange"),
        "SavedSite",
        &[400, 403, 404, 415],
    ),
    ("POST /api/sites/{id}/enable", "Enable a site", None, "Ok", &[404, 409]),
    ("POST /api/sites/{id}/disable", "Disable a site", None, "Ok", &[404]),
];

/// Returns the document for a set of quirks.
pub(crate) fn document(quirks: &Quirks) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in &OPERATIONS {
        let (method, path) = endpoint(operation);
        let operations = paths.entry(path).or_default();
        operations.insert(method.to_lowercase(), describe(operation, quirks.seed == 0));
        if path.contains(ID) {
            operations.insert("parameters".to_owned(), json!([id_parameter()]));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Edge acceleration service (sandbox)", "version": env!("CARGO_PKG_VERSION"),
            "description": "What edgecert-sandbox implements. For rehearsal and tests only.",
        },
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": merged(cert_schemas(), site_schemas()),
        },
    })
}

/// Returns method and path of each endpoint; a segment of the path may be [`ID`].
pub(crate) fn endpoints() -> impl Iterator<Item = (&'static str, &'static str)> {
    OPERATIONS.iter().map(endpoint).chain([("GET", "/openapi.json")])
}

fn endpoint((line, ..): &Operation) -> (&'static str, &'static str) {
    line.split_once(' ').unwrap_or_default()
}

fn id_parameter() -> Value {
    json!({ "name": "id", "in": "path", "required": true,
            "schema": { "type": "integer", "format": "int64", "minimum": 1 } })
}

/// Describes an operation. The responses are left open unless they are `exact`.
fn describe(&(_, summary, request, response, errors): &Operation, exact: bool) -> Value {
    let mut responses = Map::new();
    if exact {
        let errors = errors.iter().chain(&[401]).map(|status| (*status, "Error"));
        for (status, schema) in errors.chain([(200, response)]) {
            let response = json!({ "description": summary, "content": json_content(schema) });
            responses.insert(status.to_string(), response);
        }
    } else {
        responses.insert("default".to_owned(), json!({ "description": "not shown" }));
    }
    let mut operation = json!({ "summary": summary, "responses": responses });
    if let Some(schema) = request {
        let body = json!({ "requestBody": { "required": true, "content": json_content(schema) } });
        operation = merged(operation, body);
    }
    operation
}

fn json_content(schema: &str) -> Value {
    json!({ "application/json": { "schema": reference(schema) } })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn cert_schemas() -> Value {
    let (text, filled, id) = (text(), non_empty_text(), json!({ "type": "integer" }));
    let bound_site = response(&["id", "domain"], &json!({ "id": id, "domain": text }));
    json!({
        "Cert": response(&["id", "name", "domain", "type"],
            &json!({ "id": id, "name": text, "domain": text, "type": text })),
        "CertList": list("certs", "Cert"),
        "CreatedCert": response(&["ok", "id"], &json!({ "ok": ok(), "id": text })),
        "Download": response(&["ok", "id", "domain", "name", "cert_pem", "key_pem"], &json!({
            "ok": ok(), "id": id, "domain": text, "name": text, "cert_pem": text, "key_pem": text })),
        "Upload": request(&["domain", "cert_pem", "key_pem"], &json!({
            "domain": filled, "cert_pem": filled, "key_pem": filled, "name": text })),
        "NewCert": request(&["cert_pem", "key_pem"], &json!({
            "domain": text, "cert_pem": filled, "key_pem": filled, "name": text })),
        "Uploaded": response(&["ok", "id", "created", "domain", "not_after", "key_match", "bound_sites"], &json!({
            "ok": ok(), "id": text, "created": { "type": "boolean" }, "domain": text,
            "not_after": { "type": "string", "format": "date-time" },
            "key_match": { "enum": ["ok", "unverified"] },
            "bound_sites": { "type": "array", "items": bound_site } })),
    })
}

fn site_schemas() -> Value {
    json!({
        "Error": response(&["ok", "error"], &json!({ "ok": { "const": false }, "error": non_empty_text() })),
        "Ok": response(&["ok"], &json!({ "ok": ok() })),
        "SiteList": list("sites", "Site"),
        "Site": site(),
        "NewSite": request(&["domain"], &merged(writable_fields(), json!({ "domain": non_empty_text() }))),
        "SiteChange": request(&[], &writable_fields()),
        "SavedSite": response(&["ok", "site", "ignored_fields"], &json!({
            "ok": ok(), "site": reference("Site"), "ignored_fields": { "type": "array", "items": text() } })),
    })
}

/// Returns the schema of a response body, which has these fields and no others.
fn response(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// Returns the schema of a request body, where other fields are ignored.
fn request(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// Returns the schema of a list response with `total`.
fn list(field: &str, element: &str) -> Value {
    let elements = json!({ "type": "array", "items": reference(element) });
    response(&[field, "total"], &json!({ field: elements, "total": { "type": "integer" } }))
}

fn site() -> Value {
    let read_only = json!({
        "id": { "type": "integer" }, "domain": { "type": "string" }, "cname": { "type": "string" },
        "enabled": { "type": "boolean" }, "site_status": { "type": "string" },
        "disabled_reason": { "type": "string" }, "config_synced": { "type": "boolean" },
        "package_id": { "type": ["integer", "null"] },
        "created_at": { "type": "string", "format": "date-time" },
        "updated_at": { "type": "string", "format": "date-time" },
    });
    let properties = merged(writable_fields(), read_only);
    let names: Vec<&str> =
        properties.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    response(&names, &properties)
}

/// Returns the fields that a request may set. The schema is empty if `edge-api.md` does not show the type.
fn writable_fields() -> Value {
    let flag = json!({ "type": "boolean" });
    let port = json!({ "type": "integer", "minimum": 1, "maximum": 65535 });
    json!({
        "origins": { "type": "array", "items": { "type": "object", "required": ["addr"], "properties": {
            "addr": non_empty_text(), "weight": { "type": "number" }, "status": flag } } },
        "origin_protocol": { "enum": ["http", "https", "follow"] },
        "origin_http_port": port, "origin_https_port": port,
        "http_enabled": flag, "https_enabled": flag, "force_https": flag, "http2": flag, "http3": flag,
        "cert_id": { "type": ["integer", "null"] }, "package_id": { "type": "integer" },
        "ssl_mode": {}, "ssl_ciphers": {}, "hsts": {}, "ocsp_stapling": {},
        "cache_rules": { "type": "array" }, "security": { "type": "object" },
        "access_control": { "type": "object" }, "load_balance": {}, "remark": { "type": "string" },
    })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn non_empty_text() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn ok() -> Value {
    json!({ "const": true })
}

/// Merges two objects; the second takes precedence.
fn merged(mut first: Value, second: Value) -> Value {
    if let (Value::Object(all), Value::Object(more)) = (&mut first, second) {
        all.extend(more);
    }
    first
}
