//! Every endpoint of `certs` and `sites` under fifty seeds: what the API document leaves open does not change the result.

use super::{set_traffic, shop_of, site, sites};
use crate::harness::{Hook, Options, Sandbox, edgecert, request_lines};

const SEEDS: u64 = 50;

struct Scene {
    service: Sandbox,
    seed: u64,
}

impl Scene {
    #[track_caller]
    fn sites(&self, code: i32, arguments: &[&str]) -> serde_json::Value {
        self.exits_with(code, sites(&self.service, arguments))
    }

    #[track_caller]
    fn certs(&self, code: i32, arguments: &[&str]) -> serde_json::Value {
        self.exits_with(code, edgecert().against(&self.service).args(["certs"]).args(arguments))
    }

    #[track_caller]
    fn exits_with(&self, code: i32, hook: Hook) -> serde_json::Value {
        let output = hook.args(["--json"]).run();
        assert_eq!(output.code, code, "seed {}: {}{}", self.seed, output.stdout, output.stderr);
        output.json()
    }
}

fn certificates(scene: &Scene) {
    let json = scene.certs(0, &["list"]);
    assert_eq!((&json["certs"][0]["id"], json["certs"].as_array().unwrap().len()), (&5.into(), 1));
    assert_eq!(json["bound_sites"]["5"][0], "shop.example.com");
    let json = scene.certs(0, &["download", "5", "--out", "here"]);
    assert_eq!((&json["paired"], &json["cert"]["id"]), (&true.into(), &5.into()));
    scene.certs(69, &["download", "6", "--out", "here"]);
}

/// Creates, changes and deletes a site, and returns its id.
fn site_life_cycle(scene: &Scene) -> String {
    assert_eq!(scene.sites(0, &["list"])["sites"].as_array().unwrap().len(), 2);
    assert_eq!(scene.sites(0, &["list", "--without-cert"])["sites"][0]["id"], 11);
    let json = scene
        .sites(0, &["create", "new.example.com", "--origin", "192.0.2.1", "--set", "http3=true", "--wait"]);
    assert!(json["dns_record"].as_str().unwrap().starts_with("new.example.com. IN CNAME "), "{json}");
    assert_eq!(json["warnings"], serde_json::json!([]), "seed {}", scene.seed);
    let id = json["site"]["id"].to_string();
    scene.sites(69, &["create", "other.example.net"]);
    scene.sites(69, &["create", "third.example.com", "--set", "package_id=2"]);
    let json = scene.sites(0, &["update", &id, "--set", "remark=x", "--diff"]);
    assert_eq!(json["diff"], serde_json::json!([{"field": "remark", "before": "", "after": "x"}]));
    assert_eq!(scene.sites(69, &["update", &id, "--set", "waf=1"])["ignored_fields"][0], "waf");
    scene.sites(69, &["update", &id, "--set", "cert_id=6"]);
    scene.sites(65, &["update", &id, "--set", "cert_id=5"]);
    scene.sites(65, &["bind", &id, "5"]);
    assert_eq!(scene.sites(0, &["bind", &id, "5", "--allow-uncovered"])["site"]["cert_id"], 5);
    assert_eq!(scene.sites(0, &["get", &id])["site"]["cert_id"], 5);
    assert_eq!(scene.sites(0, &["disable", &id])["site"]["enabled"], false);
    assert_eq!(scene.sites(0, &["enable", &id])["site"]["enabled"], true);
    set_traffic(&scene.service, 9999);
    let error = scene.sites(69, &["enable", &id])["error"].to_string();
    assert!(error.contains("package traffic exceeded"), "seed {}: {error}", scene.seed);
    assert_eq!(scene.sites(0, &["delete", &id, "--yes"])["deleted"], true);
    scene.sites(69, &["get", &id]);
    assert!(site(&scene.service, id.parse().unwrap()).is_null());
    id
}

#[test]
fn every_endpoint_is_understood() {
    call_every_endpoint(SEEDS / 10);
}

#[test]
fn every_endpoint_is_understood_under_every_seed() {
    call_every_endpoint(SEEDS);
}

fn call_every_endpoint(seeds: u64) {
    for seed in 0..seeds {
        let scene = Scene { service: shop_of(Options { quirks: seed, ..Options::default() }), seed };
        certificates(&scene);
        let id = site_life_cycle(&scene);
        let requests = request_lines(&scene.service);
        for endpoint in [
            "GET /api/certs",
            "GET /api/certs/5/download",
            "GET /api/me/sites",
            "GET /api/sites/ID",
            "POST /api/sites",
            "POST /api/sites/ID/update",
            "POST /api/sites/ID/enable",
            "POST /api/sites/ID/disable",
            "DELETE /api/sites/ID",
        ] {
            assert!(requests.contains(&endpoint.replace("ID", &id)), "{endpoint}: {requests:?}");
        }
    }
}
