//! Conclusions from the observations of an edge.

use super::*;
use time::macros::datetime;

const NOW: OffsetDateTime = datetime!(2026-02-01 00:00 UTC);

fn leaf(fingerprint: &str, not_before: OffsetDateTime) -> Leaf {
    let not_after = not_before + time::Duration::days(90);
    Leaf { fingerprint: fingerprint.into(), names: Vec::new(), not_before, not_after, issuer: None }
}

fn expected(chain: ServedChain) -> Observation {
    Observation::Expected { chain }
}

fn failed(cause: Cause) -> Observation {
    Observation::Failed(HandshakeError { cause, ..HandshakeError::no_certificate() })
}

fn other(covers_site: bool, not_before: OffsetDateTime) -> OtherLeaf {
    OtherLeaf { leaf: leaf("other", not_before), covers_site }
}

fn other_leaf(covers_site: bool) -> Observation {
    Observation::Other { leaf: Some(other(covers_site, NOW)), clients: None }
}

/// A view of addresses that each showed something.
fn view(is_strict: bool, shown: &[Observation]) -> EdgeView {
    let mut view = EdgeView::new(is_strict);
    for (address, observation) in (1..).zip(shown) {
        view.record(SocketAddr::from(([192, 0, 2, address], 443)), observation.clone(), false);
    }
    view
}

#[test]
fn every_address_counts() {
    use Cause::{Broken, Edge, NoRoute, Refused, Unreachable};
    let same = || expected(ServedChain::Same);
    for (is_strict, shown, found) in [
        (false, vec![], "0/0"),
        (false, vec![same()], "served current leaf 1/1"),
        (false, vec![expected(ServedChain::Other)], "served current leaf warned 1/1"),
        (false, vec![expected(ServedChain::Broken)], "served leaf changeable warned 1/1"),
        (false, vec![same(), same()], "served current leaf 2/2"),
        (false, vec![other_leaf(true)], "leaf other changeable 0/1"),
        (false, vec![same(), other_leaf(true)], "leaf other changeable 1/2"),
        (false, vec![same(), failed(Refused)], "leaf changeable unverified 1/2"),
        (false, vec![same(), failed(Edge)], "leaf unverified 1/2"),
        (false, vec![same(), failed(Broken)], "leaf broken unverified 1/2"),
        (false, vec![same(), failed(Unreachable)], "current leaf unverified 1/2"),
        (false, vec![same(), Observation::Unchecked], "leaf unverified 1/2"),
        (false, vec![same(), failed(NoRoute)], "served current leaf warned 1/1"),
        (true, vec![same(), failed(NoRoute)], "current leaf unverified 1/2"),
        (false, vec![failed(NoRoute)], "unverified 0/1"),
        (false, vec![failed(Unreachable)], "unverified 0/1"),
    ] {
        let mut view = view(is_strict, &shown);
        let ServedOf { served, addresses } = view.served_of();
        let facts = [
            (view.is_served(), "served "),
            (view.is_current(), "current "),
            (view.has_leaf(), "leaf "),
            (view.has_other_leaf(), "other "),
            (view.may_change(), "changeable "),
            (view.has_broken_connection(), "broken "),
            (!view.unverified().is_empty(), "unverified "),
            (!view.warnings().is_empty(), "warned "),
        ];
        let facts: String = facts.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name).collect();
        assert_eq!(format!("{facts}{served}/{addresses}"), found, "{shown:?}");
        assert_eq!(view.pending().len(), shown.len() - served);
        assert_eq!(view.sightings(&leaf("own", NOW), NOW).is_complete, !shown.is_empty());
        view.unresolved = vec!["it does not resolve".into()];
        assert!(!view.is_served() && !view.is_current());
        assert_eq!(view.unverified()[0], "it does not resolve");
    }
    let mut view = EdgeView::default();
    view.add_addresses(vec![SocketAddr::from(([192, 0, 2, 1], 443))]);
    assert_eq!(view.unverified(), ["192.0.2.1:443 was not checked in time"]);
}

#[test]
fn later_failure_may_say_less() {
    use Cause::{Edge, Refused, TooLittleTime, Unreachable};
    let rows = [
        (other_leaf(true), failed(Edge), false),
        (other_leaf(true), failed(Refused), false),
        (other_leaf(true), other_leaf(false), true),
        (other_leaf(true), expected(ServedChain::Same), true),
        (failed(Refused), failed(Unreachable), false),
        (failed(Edge), failed(Refused), true),
        (failed(Edge), failed(Unreachable), true),
        (failed(Unreachable), failed(TooLittleTime), false),
        (expected(ServedChain::Same), failed(Edge), true),
        (expected(ServedChain::Same), other_leaf(true), true),
    ];
    for (first, second, is_replaced) in rows {
        let address = SocketAddr::from(([192, 0, 2, 1], 443));
        let mut view = view(false, std::slice::from_ref(&first));
        view.record(address, second.clone(), false);
        assert_eq!(view.addresses[&address], if is_replaced { second } else { first });
    }
    let mut refused = view(false, &[failed(Refused)]);
    let reason = "refuses it again".to_owned();
    let again = Observation::Failed(HandshakeError { cause: Refused, reason });
    refused.record(SocketAddr::from(([192, 0, 2, 1], 443)), again, false);
    assert_eq!(refused.refusals(), ["192.0.2.1:443 refuses it again"]);
}

#[test]
fn latest_other_leaf_that_covers_the_site_is_kept() {
    let mut view = EdgeView::default();
    let day = time::Duration::DAY;
    for (leaf, latest) in [
        (other(false, NOW), None),
        (other(true, NOW), Some(NOW)),
        (other(true, NOW - day), Some(NOW)),
        (other(false, NOW + day), Some(NOW)),
        (other(true, NOW + day), Some(NOW + day)),
    ] {
        view.note_other(&leaf);
        assert_eq!(view.latest_other.as_ref().map(|leaf| leaf.not_before), latest);
    }
}

#[test]
fn visitors_accept_valid_leaves_of_the_site() {
    let own = leaf("own", NOW - time::Duration::DAY);
    let seen = |observation: &Observation| match observation.sighting(&own, NOW) {
        None => "unknown".to_owned(),
        Some(Sighting::Nothing) => "nothing".to_owned(),
        Some(Sighting::Leaf(leaf)) => format!("{} until {}", leaf.fingerprint, leaf.not_after.date()),
    };
    let by_some = |leaf| Observation::Other { leaf: Some(leaf), clients: Some("some") };
    for (observation, expected) in [
        (Observation::Unchecked, "unknown"),
        (expected(ServedChain::Broken), "own until 2026-05-01"),
        (other_leaf(true), "other until 2026-05-02"),
        (by_some(other(true, NOW)), "other until 2026-05-01"),
        (by_some(other(true, NOW - 2 * time::Duration::DAY)), "other until 2026-04-30"),
        (other_leaf(false), "nothing"),
        (by_some(other(true, NOW + time::Duration::SECOND)), "nothing"),
        (failed(Cause::Refused), "nothing"),
        (failed(Cause::Edge), "unknown"),
    ] {
        assert_eq!(seen(&observation), expected, "{observation:?}");
        let accepted = view(false, std::slice::from_ref(&observation)).earliest_other(NOW).is_some();
        assert_eq!(accepted, expected.starts_with("other"));
    }
}

/// Records rounds: `+` shows the expected leaf, `-` another one, `/` both.
fn is_served_after(rounds: &str) -> bool {
    let (mut view, address) = (EdgeView::new(false), SocketAddr::from(([192, 0, 2, 1], 443)));
    for round in rounds.chars() {
        let observation = if round == '+' { expected(ServedChain::Same) } else { other_leaf(true) };
        view.record(address, observation, round == '/');
    }
    assert_eq!(view.others("still serves").is_empty(), view.is_served(), "{rounds}");
    view.is_served()
}

#[test]
fn mixed_rounds_call_for_more() {
    for rounds in ["+", "-+", "---+", "/++", "-/-++", "//+++", "/+/+++"] {
        assert!(is_served_after(rounds), "{rounds}");
    }
    for rounds in ["-", "/", "/+", "/+-+", "//++", "/+/++", "+/"] {
        assert!(!is_served_after(rounds), "{rounds}");
    }
}
