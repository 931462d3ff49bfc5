//! The pages that explain more than flags: the sections of the reference on each, and its related pages.

/// A section of the reference.
pub(super) struct Section {
    /// As in links to it.
    pub(super) anchor: &'static str,
    markdown: &'static str,
}

impl Section {
    pub(super) fn title(&self) -> &'static str {
        self.markdown.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }

    /// Whether it is a part of the section before.
    pub(super) fn is_subsection(&self) -> bool {
        self.markdown.starts_with("###")
    }

    /// What follows the heading.
    pub(super) fn body(&self) -> &'static str {
        self.markdown.split_once('\n').map_or("", |(_, body)| body)
    }
}

/// The sections with these anchors.
macro_rules! sections {
    ($($anchor:literal),* $(,)?) => {
        &[$(Section {
            anchor: $anchor,
            markdown: include_str!(concat!(env!("OUT_DIR"), "/reference/", $anchor, ".md")),
        }),*]
    };
}

/// The content of a page in addition to what follows from the command line.
pub(super) struct Page {
    /// Such as `edgecert-sites-get` or `edgecert.toml`.
    pub(super) name: &'static str,
    /// At most one section, without its heading.
    pub(super) description: &'static [Section],
    pub(super) sections: &'static [Section],
    /// Names of related pages.
    pub(super) see_also: &'static [&'static str],
}

/// The page of the configuration file.
pub(super) const CONFIGURATION: &str = "edgecert.toml";

/// The page of the state directory.
pub(super) const STATE: &str = "edgecert-state";

pub(super) static PAGES: &[Page] = &[
    Page {
        name: "edgecert",
        description: sections![],
        sections: sections!["terms", "exit-codes", "failure-notification", "system-log", "security"],
        see_also: &["edgecert-deploy", "edgecert-sync", "edgecert-doctor", CONFIGURATION, STATE],
    },
    Page {
        name: "edgecert-deploy",
        description: sections![],
        sections: sections![
            "certificate",
            "sites",
            "deployment",
            "nothing-to-do",
            "guards",
            "two-lineages-for-one-site",
            "incomplete-listings",
            "which-record-an-upload-replaces",
            "retries",
            "verification",
            "outcomes",
        ],
        see_also: &["edgecert", "edgecert-check", "edgecert-plan", "edgecert-sync", CONFIGURATION],
    },
    Page {
        name: "edgecert-check",
        description: sections![],
        sections: sections!["local-checks"],
        see_also: &["edgecert", "edgecert-deploy", CONFIGURATION],
    },
    Page {
        name: "edgecert-plan",
        description: sections![],
        sections: sections![],
        see_also: &["edgecert", "edgecert-deploy", CONFIGURATION],
    },
    Page {
        name: "edgecert-sync",
        description: sections!["sync"],
        sections: sections!["recorded-options", "timers", "kubernetes"],
        see_also: &["edgecert", "edgecert-deploy", "edgecert-status", CONFIGURATION, STATE],
    },
    Page {
        name: "edgecert-status",
        description: sections!["status-and-monitoring"],
        sections: sections!["slack"],
        see_also: &["edgecert", "edgecert-sync", CONFIGURATION, STATE],
    },
    Page {
        name: "edgecert-doctor",
        description: sections!["doctor"],
        sections: sections![],
        see_also: &["edgecert", "edgecert-sync", CONFIGURATION],
    },
    Page {
        name: "edgecert-sites",
        description: sections!["certificates-and-sites"],
        sections: sections![],
        see_also: &["edgecert", "edgecert-certs", CONFIGURATION],
    },
    Page {
        name: "edgecert-certs",
        description: sections![],
        sections: sections![],
        see_also: &["edgecert", "edgecert-sites", CONFIGURATION],
    },
];

/// The pages of file formats, with their summaries.
pub(super) static FORMATS: &[(&str, Page)] = &[
    (
        "configuration file of edgecert",
        Page {
            name: CONFIGURATION,
            description: sections!["configuration"],
            sections: sections!["settings", "api-key", "lineages", "accounts", "heartbeat"],
            see_also: &["edgecert", "edgecert-deploy", "edgecert-sync", "edgecert-doctor", STATE],
        },
    ),
    (
        "state directory of edgecert",
        Page {
            name: STATE,
            description: sections!["state-directory"],
            sections: sections![],
            see_also: &["edgecert", "edgecert-sync", "edgecert-status", CONFIGURATION],
        },
    ),
];
