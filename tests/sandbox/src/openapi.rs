//! The OpenAPI description of what is implemented, served at `/openapi.json`. It is exact for the plain choice;
//! under another seed the forms that vary are left open, as the service's own document leaves them.

use serde_json::{Map, Value, json};

use crate::quirks::Quirks;

const ERRORS: &str = "#/components/schemas/Error";

/// The description for one set of quirks.
pub(crate) fn describe(quirks: &Quirks) -> Value {
    let exact = quirks.seed == 0;
    let mut paths = json!({
        "/api/certs": {
            "get": operation("List the caller's certificates", None, &[("200", "CertList")]),
            "post": operation("Add another record", Some("NewCert"), &[("200", "Record"), ("400", ""), ("415", "")]),
        },
        "/api/certs/upload": {
            "post": operation("Upload a certificate; replaces that of the domain", Some("Upload"),
                &[("200", "Uploaded"), ("400", ""), ("403", ""), ("415", "")]),
        },
        "/api/certs/{id}/download": {
            "parameters": [id()],
            "get": operation("Get a certificate with its key", None, &[("200", "Download"), ("404", "")]),
        },
        "/api/me/sites": { "get": operation("List the caller's sites", None, &[("200", "SiteList")]) },
        "/api/sites": {
            "post": operation("Create a site", Some("NewSite"),
                &[("200", "Saved"), ("400", ""), ("403", ""), ("409", ""), ("415", "")]),
        },
        "/api/sites/{id}": {
            "parameters": [id()],
            "get": operation("Get a site", None, &[("200", "Site"), ("404", "")]),
            "delete": operation("Delete a site", None, &[("200", "Ok"), ("404", "")]),
        },
        "/api/sites/{id}/update": {
            "parameters": [id()],
            "post": operation("Change the fields that are given", Some("SiteChange"),
                &[("200", "Saved"), ("400", ""), ("403", ""), ("404", ""), ("415", "")]),
        },
        "/api/sites/{id}/enable": {
            "parameters": [id()],
            "post": operation("Switch a site on", None, &[("200", "Ok"), ("404", ""), ("409", "")]),
        },
        "/api/sites/{id}/disable": {
            "parameters": [id()],
            "post": operation("Switch a site off", None, &[("200", "Ok"), ("404", "")]),
        },
    });
    if !exact {
        leave_open(&mut paths);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Edge acceleration service, for rehearsal", "version": env!("CARGO_PKG_VERSION"),
            "description": "What edgecert-sandbox implements. For rehearsal only.",
        },
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas(),
        },
    })
}

fn id() -> Value {
    json!({ "name": "id", "in": "path", "required": true,
            "schema": { "type": "integer", "format": "int64", "minimum": 1 } })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// An operation with its answers; an answer without a schema is an error.
fn operation(summary: &str, body: Option<&str>, answers: &[(&str, &str)]) -> Value {
    let mut responses = Map::new();
    for (status, name) in answers.iter().chain(&[("401", "")]) {
        let schema = if name.is_empty() { json!({ "$ref": ERRORS }) } else { reference(name) };
        let content =
            json!({ "description": summary, "content": { "application/json": { "schema": schema } } });
        responses.insert((*status).to_owned(), content);
    }
    let mut operation = json!({ "summary": summary, "responses": responses });
    if let (Some(name), Value::Object(map)) = (body, &mut operation) {
        let content =
            json!({ "required": true, "content": { "application/json": { "schema": reference(name) } } });
        map.insert("requestBody".to_owned(), content);
    }
    operation
}

/// Takes statuses and forms of the answers away.
fn leave_open(paths: &mut Value) {
    match paths {
        Value::Object(map) if map.contains_key("responses") => {
            map.insert("responses".to_owned(), json!({ "default": { "description": "not shown" } }));
        }
        Value::Object(map) => map.values_mut().for_each(leave_open),
        _ => {}
    }
}

fn schemas() -> Value {
    let text = json!({ "type": "string" });
    let filled = json!({ "type": "string", "minLength": 1 });
    let ok = json!({ "const": true });
    json!({
        "Error": object(&["ok", "error"], &json!({ "ok": { "const": false }, "error": filled })),
        "Ok": object(&["ok"], &json!({ "ok": ok })),
        "Cert": object(&["id", "name", "domain", "type"],
            &json!({ "id": { "type": "integer" }, "name": text, "domain": text, "type": text })),
        "CertList": object(&["certs", "total"], &json!({
            "certs": { "type": "array", "items": reference("Cert") }, "total": { "type": "integer" } })),
        "Record": object(&["ok", "id"], &json!({ "ok": ok, "id": text })),
        "Download": object(&["ok", "id", "domain", "name", "cert_pem", "key_pem"], &json!({
            "ok": ok, "id": { "type": "integer" }, "domain": text, "name": text, "cert_pem": text, "key_pem": text })),
        "Upload": request(&["domain", "cert_pem", "key_pem"], &json!({
            "domain": filled, "cert_pem": filled, "key_pem": filled, "name": text })),
        "NewCert": request(&["cert_pem", "key_pem"], &json!({
            "domain": text, "cert_pem": filled, "key_pem": filled, "name": text })),
        "Uploaded": object(&["ok", "id", "created", "domain", "not_after", "key_match", "bound_sites"], &json!({
            "ok": ok, "id": text, "created": { "type": "boolean" }, "domain": text,
            "not_after": { "type": "string", "format": "date-time" },
            "key_match": { "enum": ["ok", "unverified"] },
            "bound_sites": { "type": "array", "items": object(&["id", "domain"],
                &json!({ "id": { "type": "integer" }, "domain": text })) } })),
        "SiteList": object(&["sites", "total"], &json!({
            "sites": { "type": "array", "items": reference("Site") }, "total": { "type": "integer" } })),
        "Site": site(),
        "NewSite": request(&["domain"], &with(writable(), "domain", filled)),
        "SiteChange": request(&[], &writable()),
        "Saved": object(&["ok", "site", "ignored_fields"], &json!({
            "ok": ok, "site": reference("Site"), "ignored_fields": { "type": "array", "items": text } })),
    })
}

/// An answer: these fields and no others.
fn object(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
}

/// A body: other fields are ignored.
fn request(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

fn with(mut properties: Value, name: &str, schema: Value) -> Value {
    if let Value::Object(map) = &mut properties {
        map.insert(name.to_owned(), schema);
    }
    properties
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
    let mut properties = writable();
    if let (Value::Object(all), Value::Object(more)) = (&mut properties, read_only) {
        all.extend(more);
    }
    let names: Vec<&str> =
        properties.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
    object(&names, &properties)
}

/// Fields that a request may set; those without a type have none in the service's document.
fn writable() -> Value {
    let (flag, port) =
        (json!({ "type": "boolean" }), json!({ "type": "integer", "minimum": 1, "maximum": 65535 }));
    json!({
        "origins": { "type": "array", "items": { "type": "object", "required": ["addr"], "properties": {
            "addr": { "type": "string", "minLength": 1 }, "weight": { "type": "number" }, "status": flag } } },
        "origin_protocol": { "enum": ["http", "https", "follow"] },
        "origin_http_port": port, "origin_https_port": port,
        "http_enabled": flag, "https_enabled": flag, "force_https": flag, "http2": flag, "http3": flag,
        "cert_id": { "type": ["integer", "null"] }, "package_id": { "type": "integer" },
        "ssl_mode": {}, "ssl_ciphers": {}, "hsts": {}, "ocsp_stapling": {},
        "cache_rules": { "type": "array" }, "security": { "type": "object" },
        "access_control": { "type": "object" }, "load_balance": {}, "remark": { "type": "string" },
    })
}
