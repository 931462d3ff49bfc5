//! Slack: the time left to deploy before visitors get an invalid certificate.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{DAY, EdgeAddress, EdgeMode, Hook, Host, change, step, test_ca};

const SITES: [&str; 1] = ["a.example"];

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

/// The only site in the JSON of `status`. Table and metrics show the same fields.
fn site(status: Hook) -> Value {
    status.args(["--json"]).succeeds().json()["lineages"][0]["sites"][0].clone()
}

/// A host whose leaf expires in 9 to 10 days.
fn host() -> Host {
    let host = Host::new();
    host.lineage.renew_between(&SITES, [-80, 10]);
    host
}

fn deployed() -> Host {
    let host = host();
    host.hook().succeeds();
    assert_eq!(host.shown(), days(9, Some(true)));
    host
}

impl Host {
    /// Renews the lineage, with a leaf that expires in 39 to 40 days.
    fn renew(&self) {
        self.lineage.renew_between(&SITES, [-1, 40]);
    }

    /// What `status` shows.
    fn shown(&self) -> Shown {
        let site = site(self.status(&[]));
        let slack = site["slack_seconds"].as_i64().map(|slack| slack.div_euclid(DAY));
        Shown { slack, serves_leaf: site["serves_leaf"].as_bool() }
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
    let host = deployed();
    let (stale, both) = host.second_address(&EdgeAddress::new(EdgeMode::Stale));
    host.renew();
    host.hook().facing(&both).args(["--wait", "1"]).exits_with(75);
    assert_eq!(host.shown(), days(9, Some(false)));

    // The address can no longer be reached, and was last seen to serve the old leaf.
    host.service.close_edge_address(&stale);
    host.sync().facing(&both).args(["--wait", "1"]).succeeds().prints("a.example synced");
    assert_eq!(host.shown(), days(9, None), "nothing else was seen since");
    // The address no longer belongs to the edge.
    host.sync().succeeds();
    assert_eq!(host.shown(), days(39, Some(true)));
}

#[test]
fn alternating_nodes_limit_the_slack() {
    let host = deployed();
    for (until, slack) in [(5, 4), (60, 39)] {
        host.renew();
        let other = test_ca().issue_between(&SITES, [-30, until]).unwrap();
        let nodes = EdgeAddress::serving(&other.fullchain(), &other.key).every(2);
        let (nodes, _) = host.second_address(&nodes);
        host.hook().facing(&nodes).args(["--wait", "1"]).exits_with(75);
        assert_eq!(host.shown(), days(slack, Some(false)), "{until}");
    }
}

#[test]
fn unverified_upload_does_not_lengthen_slack() {
    let host = host();
    let (same, _) = host.second_address(&EdgeAddress::new(EdgeMode::Same));
    let deploy = || host.hook().facing(&same);
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
fn verification_turned_off_forgets_the_edge() {
    let off: [&[&str]; 2] =
        [&["--verify", "off"], &["--verify", "off", "--domain", "a.example", "--wait", "0"]];
    for arguments in off {
        let host = deployed();
        host.renew();
        host.hook().args(arguments).succeeds();
        assert_eq!(host.shown(), days(39, None), "no run will ever see the edge");
        host.sync().succeeds();
        assert_eq!(host.shown(), days(39, None));
        host.renew();
        host.hook().succeeds();
        assert_eq!(host.shown(), days(39, Some(true)));
    }
}

#[test]
fn wrong_certificate_leaves_no_slack() {
    let other = test_ca().issue_between(&["other.example"], [-30, 300]).unwrap();
    let future = test_ca().issue_between(&SITES, [2, 300]).unwrap();
    // The guard refuses to replace a certificate that was issued later.
    for (wrong, code) in [(other, 75), (future, 65)] {
        let host = deployed();
        let wrong = EdgeAddress::serving(&wrong.fullchain(), &wrong.key);
        let (_, both) = host.second_address(&wrong);
        host.hook().facing(&both).args(["--wait", "1"]).exits_with(code);
        assert_eq!(host.shown(), days(0, Some(false)));
        // Nor do its dates count with new handshakes.
        let site = site(host.status(&["--verify"]).facing(&both));
        assert_eq!((&site["slack_seconds"], &site["served"]["not_after"]), (&json!(0), &Value::Null));
    }
}

#[test]
fn refused_name_leaves_no_slack() {
    let host = deployed();
    let (_, both) = host.second_address(&EdgeAddress::new(EdgeMode::Refuse));
    host.renew();
    host.hook().facing(&both).args(["--wait", "1"]).exits_with(75);
    assert_eq!(host.shown(), days(0, Some(false)));
    host.sync().succeeds();
    assert_eq!(host.shown(), days(39, Some(true)));
}

#[test]
fn handshakes_alone_show_the_slack() {
    let host = deployed();

    step("new_handshakes_are_not_recorded");
    let other = test_ca().issue_between(&SITES, [-30, 5]).unwrap();
    let (second, both) = host.second_address(&EdgeAddress::serving(&other.fullchain(), &other.key));
    let before = host.recorded();
    let verified = |edge: &str| {
        let site = site(host.status(&["--verify"]).facing(edge));
        (site["slack_seconds"].as_i64().map(|slack| slack / DAY), site["serves_leaf"].as_bool())
    };
    assert_eq!(verified(&both), (Some(4), Some(false)));
    assert_eq!(verified(&second), (Some(4), Some(false)));
    assert_eq!(verified("127.0.0.1:1"), (Some(9), Some(true)), "as recorded");
    assert_eq!(host.recorded(), before);
    assert_eq!(host.shown(), days(9, Some(true)));

    step("handshakes_without_upload_count");
    fs::remove_file(host.state_file()).unwrap();
    host.hook().succeeds();
    assert_eq!(host.shown(), days(9, Some(true)));

    step("edge_check_of_sync_counts");
    host.edit(|state| {
        state["sites"][0].as_object_mut().unwrap().remove("edge");
    });
    assert_eq!(host.shown(), days(9, None));
    host.set_back(DAY);
    host.sync().succeeds();
    let seen = &host.recorded()["sites"][0]["edge"]["seen"][&host.service.endpoints().edge];
    assert_eq!(seen["fingerprint"], host.recorded()["certificate"]["fingerprint"]);
    assert_eq!(host.shown(), days(9, Some(true)));
}

#[test]
fn site_without_https_forgets_its_edge() {
    let host = deployed();
    let id = host.service.sites()[0]["id"].as_u64().unwrap();
    change(&host.service, &format!("/api/sites/{id}/update"), &json!({"https_enabled": false}));
    host.renew();
    assert_eq!(host.hook().args(["--wait", "1", "--json"]).succeeds().sites(), ["a.example: synced"]);
    assert_eq!(host.shown(), days(39, None), "visitors of a site without HTTPS notice nothing");
}

#[test]
fn later_run_sees_what_arrived() {
    let host = deployed();
    host.service.hold_pushes(true);
    host.renew();
    host.hook().args(["--wait", "1"]).exits_with(75);
    assert_eq!(host.shown(), days(9, Some(false)));
    host.hook().fails_temporarily(&host.service);
    assert_eq!(host.shown(), days(9, Some(false)));
    host.service.hold_pushes(false);
    host.service.push_now();
    host.sync().succeeds();
    assert_eq!(host.shown(), days(39, Some(true)));
}
