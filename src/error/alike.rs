//! Merges failures that are alike: a thousand sites that fail for one reason are one line.

use std::collections::HashMap;

use super::{CommandError, ErrorKind};
use crate::text::{count, sanitize};

/// Failures that are alike are listed one by one up to this number. Of more, as many names are given.
pub(crate) const MAX_NAMED: usize = 5;

/// What a failure is about.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The kind of thing, such as `site`.
    noun: &'static str,
    name: String,
    /// Further names in the message.
    others: Vec<String>,
}

impl Subject {
    pub(crate) fn site(domain: &impl ToString) -> Self {
        Self { noun: "site", name: domain.to_string(), others: Vec::new() }
    }

    /// A lineage that failed because of something else.
    pub(super) fn lineage(name: &str, inner: Option<Self>) -> Self {
        let others =
            inner.into_iter().flat_map(|inner| inner.others.into_iter().chain([inner.name])).collect();
        Self { noun: "lineage", name: name.to_owned(), others }
    }

    fn is_in(&self, word: &str) -> bool {
        self.others.iter().chain([&self.name]).any(|name| word.contains(name.as_str()))
    }
}

/// Names the first of these and counts the rest.
pub(crate) fn first_names(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(MAX_NAMED).map(|name| sanitize(name)).collect();
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl CommandError {
    /// Merges failures of many sites or lineages that are alike, each into the first of them.
    pub(crate) fn merge(errors: &[Self]) -> Vec<Self> {
        let mut groups: Vec<Vec<&Self>> = Vec::new();
        let mut group_of: HashMap<(ErrorKind, String, String), usize> = HashMap::new();
        for error in errors {
            let Some(pattern) = error.pattern() else {
                groups.push(vec![error]);
                continue;
            };
            let number = *group_of.entry(pattern).or_insert(groups.len());
            match groups.get_mut(number) {
                Some(group) => group.push(error),
                None => groups.push(vec![error]),
            }
        }
        groups.iter().flat_map(|group| Self::merge_alike(group)).collect()
    }

    fn merge_alike(group: &[&Self]) -> Vec<Self> {
        let (Some(first), true) = (group.first(), group.len() > MAX_NAMED) else {
            return group.iter().map(|error| (*error).clone()).collect();
        };
        let subjects = || group.iter().filter_map(|error| error.subject.as_ref());
        let names: Vec<&str> = subjects().map(|subject| subject.name.as_str()).collect();
        let noun = subjects().next().map_or("failure", |subject| subject.noun);
        let (names, number) = (first_names(&names), count(group.len(), noun));
        let message = format!("{number} ({names}) failed in the same way; the first: {}", first.message);
        vec![Self { message, ..(*first).clone() }]
    }

    /// What failures that are alike have in common; `None` for one that is about neither a site nor a lineage.
    fn pattern(&self) -> Option<(ErrorKind, String, String)> {
        let subject = self.subject.as_ref()?;
        let pattern = |text: &str| {
            let words = text.split(' ').map(|word| if is_particular(word, subject) { "*" } else { word });
            words.collect::<Vec<_>>().join(" ")
        };
        let hint = self.advice.as_deref().unwrap_or_default();
        Some((self.kind, pattern(&self.message), pattern(hint)))
    }
}

/// Whether a word of a message differs from site to site: a name, a path or a number other than the status of a
/// response.
fn is_particular(word: &str, subject: &Subject) -> bool {
    let status = word.strip_prefix('(').and_then(|rest| rest.get(..4));
    let is_status =
        status.is_some_and(|text| text.ends_with(')') && text.bytes().take(3).all(|b| b.is_ascii_digit()));
    !is_status
        && (word.contains('/') || word.bytes().any(|byte| byte.is_ascii_digit()) || subject.is_in(word))
}

#[cfg(test)]
mod tests {
    use super::super::Diagnostic;
    use super::*;

    #[derive(thiserror::Error, Debug)]
    #[error("{site} is stale: 192.0.2.{site_number}:443 serves {leaf} ({status})", site = self.0, site_number = self.1, leaf = self.1 * 1000, status = self.2)]
    struct Stale(String, usize, u16);

    impl Diagnostic for Stale {
        fn kind(&self) -> ErrorKind {
            ErrorKind::Temporary
        }

        fn subject(&self) -> Option<Subject> {
            Some(Subject::site(&self.0))
        }
    }

    fn stale(number: usize, status: u16) -> CommandError {
        Stale(format!("{}.example", ["a", "b", "c", "d", "e", "f", "g"][number % 7]), number, status).into()
    }

    fn merged(errors: &[CommandError]) -> Vec<String> {
        CommandError::merge(errors).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn many_alike_are_one() {
        let errors: Vec<CommandError> = (0..1000).map(|number| stale(number, 200)).collect();
        assert_eq!(
            merged(&errors),
            [
                "1000 sites (a.example, b.example, c.example, d.example, e.example and 995 more) failed in the same \
              way; the first: a.example is stale: 192.0.2.0:443 serves 0 (200)"
            ]
        );
        assert_eq!(merged(&errors[..MAX_NAMED]).len(), MAX_NAMED);
        assert_eq!(merged(&errors[..=MAX_NAMED]).len(), 1);
        let lineages: Vec<CommandError> = errors
            .iter()
            .enumerate()
            .map(|(number, error)| error.for_lineage(&format!("shop-{number}")))
            .collect();
        let [text] = &merged(&lineages)[..] else { panic!("{:?}", merged(&lineages)) };
        assert!(
            text.starts_with("1000 lineages (shop-0, shop-1, shop-2, shop-3, shop-4 and 995 more) failed"),
            "{text}"
        );
    }

    #[test]
    fn different_failures_stay_apart() {
        let (ok, refused) = (|number| stale(number, 200), |number| stale(number, 403));
        let errors: Vec<CommandError> =
            (0..40).map(|number| if number % 2 == 0 { ok(number) } else { refused(number) }).collect();
        assert_eq!(merged(&errors).len(), 2);
        let other = || CommandError::from(anyhow::anyhow!("x"));
        let errors: Vec<CommandError> = (0..10).map(|_| other()).collect();
        assert_eq!(merged(&errors).len(), 10, "neither sites nor lineages");
    }
}
