//! The OpenAPI document of the API, served at `/openapi.json`. It is exact for quirk seed 0. Under any other
//! seed it leaves response statuses and bodies open, as `edge-api.md` does.

use serde_json::{Map, Value, json};

use crate::quirks::Quirks;

const ERROR: &str = "Error";

/// The segment of a path that stands for a number.
pub(crate) const ID: &str = "{id}";

/// Returns the document for a set of quirks.
pub(crate) fn document(quirks: &Quirks) -> Value {
    let mut paths = merged(cert_paths(), site_paths());
    if quirks.seed != 0 {
        remove_responses(&mut paths);
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
pub(crate) fn endpoints() -> Vec<(String, String)> {
    let paths = merged(cert_paths(), site_paths());
    let mut endpoints = vec![("GET".to_owned(), "/openapi.json".to_owned())];
    for (path, operations) in paths.as_object().into_iter().flatten() {
        let methods = operations.as_object().into_iter().flat_map(Map::keys);
        let methods = methods.filter(|key| *key != "parameters");
        endpoints.extend(methods.map(|method| (method.to_ascii_uppercase(), path.clone())));
    }
    endpoints
}

fn cert_paths() -> Value {
    json!({
        "/api/certs": {
            "get": operation("List the account's certificates", None, &[("200", "CertList")]),
            "post": operation("Add a certificate record", Some("NewCert"),
                &[("200", "CreatedCert"), ("400", ERROR), ("415", ERROR)]),
        },
        "/api/certs/upload": {
            "post": operation("Upload a certificate, replacing the domain's record", Some("Upload"),
                &[("200", "Uploaded"), ("400", ERROR), ("403", ERROR), ("415", ERROR)]),
        },
        "/api/certs/{id}/download": {
            "parameters": [id_parameter()],
            "get": operation("Get a certificate with its key", None, &[("200", "Download"), ("404", ERROR)]),
        },
    })
}

fn site_paths() -> Value {
    json!({
        "/api/me/sites": { "get": operation("List the account's sites", None, &[("200", "SiteList")]) },
        "/api/sites": {
            "post": operation("Create a site", Some("NewSite"),
                &[("200", "SavedSite"), ("400", ERROR), ("403", ERROR), ("409", ERROR), ("415", ERROR)]),
        },
        "/api/sites/{id}": {
            "parameters": [id_parameter()],
            "get": operation("Get a site", None, &[("200", "Site"), ("404", ERROR)]),
            "delete": operation("Delete a site", None, &[("200", "Ok"), ("404", ERROR)]),
        },
        "/api/sites/{id}/update": {
            "parameters": [id_parameter()],
            "post": operation("Update the given fields of a site", Some("SiteChange"),
                &[("200", "SavedSite"), ("400", ERROR), ("403", ERROR), ("404", ERROR), ("415", ERROR)]),
        },
        "/api/sites/{id}/enable": {
            "parameters": [id_parameter()],
            "post": operation("Enable a site", None, &[("200", "Ok"), ("404", ERROR), ("409", ERROR)]),
        },
        "/api/sites/{id}/disable": {
            "parameters": [id_parameter()],
            "post": operation("Disable a site", None, &[("200", "Ok"), ("404", ERROR)]),
        },
    })
}

fn id_parameter() -> Value {
    json!({ "name": "id", "in": "path", "required": true,
            "schema": { "type": "integer", "format": "int64", "minimum": 1 } })
}

/// Returns an operation with the schemas of its request body and its responses, adding 401.
fn operation(summary: &str, request: Option<&str>, responses: &[(&str, &str)]) -> Value {
    let responses = responses.iter().chain(&[("401", ERROR)]).map(|(status, schema)| {
        let response = json!({ "description": summary, "content": json_content(schema) });
        ((*status).to_owned(), response)
    });
    let mut operation = json!({ "summary": summary, "responses": responses.collect::<Map<_, _>>() });
    if let (Some(schema), Value::Object(map)) = (request, &mut operation) {
        let body = json!({ "required": true, "content": json_content(schema) });
        map.insert("requestBody".to_owned(), body);
    }
    operation
}

fn json_content(schema: &str) -> Value {
    json!({ "application/json": { "schema": reference(schema) } })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// Replaces the responses of every operation by an undescribed default.
fn remove_responses(paths: &mut Value) {
    match paths {
        Value::Object(map) if map.contains_key("responses") => {
            map.insert("responses".to_owned(), json!({ "default": { "description": "not shown" } }));
        }
        Value::Object(map) => map.values_mut().for_each(remove_responses),
        _ => {}
    }
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
