//! Slack: the time left to deploy before visitors get an invalid certificate. JSON, table and metrics agree.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    DAY, EdgeAddress, EdgeMode, Hook, Lineage, Sandbox, change, deploy, edgecert, edit_state, sandbox,
    set_back, state_files, sync, test_ca,
};

const SITES: [&str; 1] = ["a.example"];

/// A host with a lineage of one site, and the service that it deploys to.
struct Host {
    service: Sandbox,
    state: TempDir,
    lineage: Lineage,
}

/// What `status` shows of the only site.
#[derive(Debug, PartialEq)]
struct Shown {
    /// In whole days.
    slack: Option<i64>,
    serves_leaf: Option<bool>,
}

/// A slack of more than this many days, but not of one day more.
fn days(days: i64, serves_leaf: Option<bool>) -> Shown {
    Shown { slack: Some(days), serves_leaf }
}

impl Host {
    /// A host whose leaf expires in 9 to 10 days.
    fn new() -> Self {
        let lineage = Lineage::issued_for(&SITES);
        lineage.renew_between(&SITES, [-80, 10]);
        Self { service: sandbox(&SITES), state: TempDir::new().unwrap(), lineage }
    }

    fn deployed() -> Self {
        let host = Self::new();
        host.deploy().succeeds();
        assert_eq!(host.shown(), days(9, Some(true)));
        host
    }

    /// Renews the lineage, with a leaf that expires in 39 to 40 days.
    fn renew(&self) {
        self.lineage.renew_between(&SITES, [-1, 40]);
    }

    fn deploy(&self) -> Hook {
        deploy(&self.service, &self.lineage, self.state.path())
    }

    fn sync(&self) -> Hook {
        sync(&self.service, self.state.path())
    }

    fn status(&self, arguments: &[&str]) -> Hook {
        let status = edgecert().args(["status"]).args(arguments);
        status.env("EDGECERT_STATE_DIR", self.state.path())
    }

    /// What `status` shows, after a comparison of JSON, metrics and table.
    #[track_caller]
    fn shown(&self) -> Shown {
        let metrics = TempDir::new().unwrap();
        let file = metrics.path().join("edgecert.prom");
        let json = self.status(&["--json", "--metrics", file.to_str().unwrap()]).succeeds().json();
        let site = &json["lineages"][0]["sites"][0];
        let text = fs::read_to_string(file).unwrap();
        let metric = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")))?;
            Some(line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap())
        };
        let (slack, serves_leaf) = (site["slack_seconds"].as_i64(), site["serves_leaf"].as_bool());
        assert_eq!(metric("edgecert_slack_seconds"), slack, "{text}");
        assert_eq!(metric("edgecert_served"), serves_leaf.map(i64::from), "{text}");
        let table = self.status(&[]).succeeds().stdout;
        let [head, row] = [0, 1].map(|line| table.lines().nth(line).unwrap());
        let cell = &row[head.find("SAFE FOR").unwrap()..head.find("LINEAGE").unwrap()];
        let days = slack.map(|slack| slack.div_euclid(DAY));
        let expected = match days {
            None => "-".to_owned(),
            Some(..0) => "expired".to_owned(),
            Some(0) => "0 s".to_owned(),
            Some(days) => format!("{days} d"),
        };
        assert_eq!(cell.trim(), expected, "{table}");
        assert!(row.starts_with("x ") || slack.is_none_or(|slack| slack > 0), "{table}");
        Shown { slack: days, serves_leaf }
    }

    fn recorded(&self) -> Value {
        serde_json::from_slice(&fs::read(&state_files(self.state.path())[0]).unwrap()).unwrap()
    }

    fn edit(&self, change: impl FnOnce(&mut Value)) {
        edit_state(&state_files(self.state.path())[0], change);
    }

    /// Opens another address of the edge. Returns it, and both as a setting.
    fn second_address(&self, address: &EdgeAddress) -> (String, String) {
        let second = self.service.open_edge_address(address);
        let both = format!("{},{second}", self.service.endpoints().edge);
        (second, both)
    }
}

#[test]
fn stale_address_limits_the_slack() {
    let host = Host::deployed();
    let (stale, both) = host.second_address(&EdgeAddress::new(EdgeMode::Stale));
    host.renew();
    host.deploy().env("EDGECERT_EDGE_ADDRESS", &both).args(["--wait", "1"]).exits_with(75);
    assert_eq!(host.shown(), days(9, Some(false)));

    // The address can no longer be reached, and was last seen to serve the old leaf.
    host.service.close_edge_address(&stale);
    let output = host.sync().env("EDGECERT_EDGE_ADDRESS", &both).args(["--wait", "1"]).succeeds();
    assert!(output.stdout.contains("a.example synced"), "{}", output.stdout);
    assert_eq!(host.shown(), days(9, None), "nothing else was seen since");
    // The address no longer belongs to the edge.
    host.sync().succeeds();
    assert_eq!(host.shown(), days(39, Some(true)));
}

#[test]
fn alternating_nodes_limit_the_slack() {
    let host = Host::deployed();
    for (until, slack) in [(5, 4), (60, 39)] {
        host.renew();
        let other = test_ca().issue_between(&SITES, [-30, until]).unwrap();
        let nodes = EdgeAddress::serving(EdgeMode::Alternate, &other.fullchain(), &other.key);
        let (nodes, _) = host.second_address(&nodes);
        host.deploy().env("EDGECERT_EDGE_ADDRESS", &nodes).args(["--wait", "1"]).exits_with(75);
        assert_eq!(host.shown(), days(slack, Some(false)), "{until}");
    }
}

#[test]
fn unverified_upload_does_not_lengthen_slack() {
    let host = Host::new();
    let (same, _) = host.second_address(&EdgeAddress::new(EdgeMode::Same));
    let deploy = || host.deploy().env("EDGECERT_EDGE_ADDRESS", &same);
    deploy().succeeds();
    assert_eq!(host.shown(), days(9, Some(true)));
    host.service.close_edge_address(&same);
    host.renew();
    let output = deploy().args(["--wait", "1", "--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: synced"]);
    assert_eq!(host.shown(), days(9, None), "last seen to serve the old leaf, before the upload");
    // The bare upload looks at no edge, and knows no addresses.
    deploy().args(["--domain", "a.example", "--wait", "0"]).succeeds();
    assert_eq!(host.shown(), days(9, None));
    host.sync().succeeds();
    assert_eq!(host.shown(), days(39, Some(true)));
}

#[test]
fn unseen_edge_counts_as_recorded() {
    for arguments in [&["--verify", "off"][..], &["--wait", "1", "--edge-address", "127.0.0.1:1"]] {
        let host = Host::new();
        for slack in [9, 39] {
            host.deploy().without_env("EDGECERT_EDGE_ADDRESS").args(arguments).succeeds();
            assert_eq!(host.shown(), days(slack, None), "{arguments:?}");
            host.renew();
        }
        host.sync().succeeds();
    }
}

#[test]
fn verification_turned_off_forgets_the_edge() {
    let off: [&[&str]; 2] =
        [&["--verify", "off"], &["--verify", "off", "--domain", "a.example", "--wait", "0"]];
    for arguments in off {
        let host = Host::deployed();
        host.renew();
        host.deploy().args(arguments).succeeds();
        assert_eq!(host.shown(), days(39, None), "no run will ever see the edge");
        host.sync().succeeds();
        assert_eq!(host.shown(), days(39, None));
        host.renew();
        host.deploy().succeeds();
        assert_eq!(host.shown(), days(39, Some(true)));
    }
}

#[test]
fn wrong_certificate_leaves_no_slack() {
    let other = test_ca().issue_between(&["other.example"], [-30, 300]).unwrap();
    let future = test_ca().issue_between(&SITES, [2, 300]).unwrap();
    // The guard refuses to replace a certificate that was issued later.
    for (wrong, code) in [(other, 75), (future, 65)] {
        let host = Host::deployed();
        let wrong = EdgeAddress::serving(EdgeMode::Other, &wrong.fullchain(), &wrong.key);
        let (_, both) = host.second_address(&wrong);
        host.deploy().env("EDGECERT_EDGE_ADDRESS", &both).args(["--wait", "1"]).exits_with(code);
        assert_eq!(host.shown(), days(0, Some(false)));
        // Nor do its dates count with new handshakes.
        let hook = host.status(&["--verify", "--json"]).env("EDGECERT_EDGE_ADDRESS", &both);
        let site = hook.succeeds().json()["lineages"][0]["sites"][0].clone();
        assert_eq!((&site["slack_seconds"], &site["served"]["not_after"]), (&json!(0), &Value::Null));
    }
}

#[test]
fn refused_name_leaves_no_slack() {
    let host = Host::deployed();
    let (_, both) = host.second_address(&EdgeAddress::new(EdgeMode::Refuse));
    host.renew();
    host.deploy().env("EDGECERT_EDGE_ADDRESS", &both).args(["--wait", "1"]).exits_with(75);
    assert_eq!(host.shown(), days(0, Some(false)));
    host.sync().succeeds();
    assert_eq!(host.shown(), days(39, Some(true)));
}

#[test]
fn new_handshakes_are_not_recorded() {
    let host = Host::deployed();
    let other = test_ca().issue_between(&SITES, [-30, 5]).unwrap();
    let (second, both) =
        host.second_address(&EdgeAddress::serving(EdgeMode::Other, &other.fullchain(), &other.key));
    let before = host.recorded();
    let verified = |edge: &str| {
        let status = host.status(&["--verify", "--json"]).env("EDGECERT_EDGE_ADDRESS", edge);
        let site = status.succeeds().json()["lineages"][0]["sites"][0].clone();
        (site["slack_seconds"].as_i64().map(|slack| slack / DAY), site["serves_leaf"].as_bool())
    };
    assert_eq!(verified(&both), (Some(4), Some(false)));
    assert_eq!(verified(&second), (Some(4), Some(false)));
    assert_eq!(verified("127.0.0.1:1"), (Some(9), Some(true)), "as recorded");
    assert_eq!(host.recorded(), before);
    assert_eq!(host.shown(), days(9, Some(true)));
}

#[test]
fn edge_check_of_sync_counts() {
    let host = Host::deployed();
    // As an earlier release would have left it.
    host.edit(|state| {
        state["sites"][0].as_object_mut().unwrap().remove("edge");
    });
    assert_eq!(host.shown(), days(9, Some(true)));
    set_back(host.state.path(), DAY);
    host.sync().succeeds();
    let seen = &host.recorded()["sites"][0]["edge"]["seen"][&host.service.endpoints().edge];
    assert_eq!(seen["fingerprint"], host.recorded()["certificate"]["fingerprint"]);
    assert_eq!(host.shown(), days(9, Some(true)));
}

#[test]
fn unreadable_memory_is_dropped() {
    let host = Host::deployed();
    for edge in
        [json!(5), json!({"seen": {"nowhere": null}}), json!({"seen": {"192.0.2.1:443": {"later": 1}}})]
    {
        host.edit(|state| state["sites"][0]["edge"] = edge.clone());
        assert_eq!(host.shown(), days(9, Some(true)), "{edge}: the outcome of the last run counts");
    }
}

#[test]
fn site_without_https_forgets_its_edge() {
    let host = Host::deployed();
    let id = host.service.sites()[0]["id"].as_u64().unwrap();
    change(&host.service, &format!("/api/sites/{id}/update"), &json!({"https_enabled": false}));
    host.renew();
    let output = host.deploy().args(["--wait", "1", "--json"]).succeeds();
    assert_eq!(output.sites(), ["a.example: synced"]);
    assert_eq!(host.shown(), days(39, None), "visitors of a site without HTTPS notice nothing");
}

#[test]
fn handshakes_without_upload_count() {
    let host = Host::deployed();
    fs::remove_file(&state_files(host.state.path())[0]).unwrap();
    host.deploy().succeeds();
    assert_eq!(host.shown(), days(9, Some(true)));
}

#[test]
fn later_run_sees_what_arrived() {
    let host = Host::deployed();
    host.service.hold_pushes(true);
    host.renew();
    host.deploy().args(["--wait", "1"]).exits_with(75);
    assert_eq!(host.shown(), days(9, Some(false)));
    host.deploy().fails_temporarily(&host.service);
    assert_eq!(host.shown(), days(9, Some(false)));
    host.service.hold_pushes(false);
    host.service.push_now();
    host.sync().succeeds();
    assert_eq!(host.shown(), days(39, Some(true)));
}
