//! The pages of file formats, and the environment: settings are listed from their definition, with the default that the
//! reference gives.

use super::command_page::sections;
use super::markdown::{self, Links, cells, inline, labelled};
use super::pages::{Page, Section};
use super::roff::{Inline, Roff};
use crate::settings::SETTINGS;

/// Writes the page of a file format.
pub(super) fn write(summary: &str, page: &Page, links: Links<'_>) -> Roff {
    let mut roff = Roff::page(page.name, 5);
    roff.section("Name");
    roff.paragraph(&Inline::roman(&format!("{} - {summary}", page.name)));
    roff.section("Description");
    for section in page.description {
        markdown::render(section.body(), links, &mut roff);
    }
    for section in page.sections {
        if section.anchor == "settings" {
            settings(section, links, &mut roff);
        } else {
            sections(std::slice::from_ref(section), links, &mut roff);
        }
    }
    files(&mut roff);
    roff
}

/// The settings by their keys in the file, and the rest of their section.
fn settings(section: &Section, links: Links<'_>, roff: &mut Roff) {
    roff.section(section.title());
    let (rows, text): (Vec<&str>, Vec<&str>) = section.body().lines().partition(|line| line.starts_with('|'));
    for row in rows.iter().skip(2).map(|row| cells(row)) {
        let [_, _, key, default] = row.as_slice() else { continue };
        let key = key.trim_matches('`');
        let setting = SETTINGS.iter().find(|setting| setting.name == key);
        let mut entries = Vec::new();
        let mut tag = Inline::bold(key);
        if let Some(setting) = setting {
            tag = tag.then(&Inline::roman(" = ")).then(&Inline::italic(setting.value_name));
            entries.push(inline(setting.help, links).then(&Inline::roman(".")));
        }
        entries.push(labelled("Default").then(&inline(default, links)));
        if let Some(setting) = setting {
            let flag = Inline::bold(&format!("--{}", setting.flag()));
            let variable = Inline::bold(&setting.variable());
            entries.push(
                labelled("Flag")
                    .then(&flag)
                    .then(&Inline::roman(", "))
                    .then(&labelled("variable"))
                    .then(&variable),
            );
        }
        if !key.is_empty() {
            roff.tagged(&tag, &entries);
        }
    }
    markdown::render(&text.join("\n"), links, roff);
}

/// Environment and files, for the page of the program.
pub(super) fn write_environment(links: Links<'_>, roff: &mut Roff) {
    roff.section("Environment");
    roff.tagged(&Inline::bold("EDGECERT_CONFIG"), &[inline("Configuration file.", links)]);
    roff.tagged(&Inline::bold("EDGECERT_API_KEY"), &[inline("The API key itself.", links)]);
    for setting in SETTINGS {
        let help = inline(setting.help, links).then(&Inline::roman("."));
        roff.tagged(&Inline::bold(&setting.variable()), &[help]);
    }
    for (variables, meaning) in VARIABLES {
        roff.tagged(&inline(variables, links), &[inline(meaning, links)]);
    }
    files(roff);
}

/// Variables that are not settings.
const VARIABLES: [(&str, &str); 7] = [
    (
        "`RENEWED_LINEAGE`, `CERT_KEY_PATH`, `LEGO_HOOK_CERT_PATH`, `LEGO_CERT_PATH`",
        "Set by ACME clients for their hooks; see [certificate](#certificate).",
    ),
    (
        "`https_proxy`, `HTTPS_PROXY`, `all_proxy`, `ALL_PROXY`, `no_proxy`, `NO_PROXY`",
        "The proxy for requests to the service, unless `proxy` is set; see [settings](#settings).",
    ),
    ("`SSL_CERT_FILE`, `SSL_CERT_DIR`", "Location of the system's root certificates."),
    (
        "`STATE_DIRECTORY`, `CREDENTIALS_DIRECTORY`",
        "Set by systemd: the state directory, and the directory with the credential `edgecert-api-key`.",
    ),
    ("`XDG_CONFIG_HOME`, `XDG_STATE_HOME`, `HOME`", "Locate the files of users other than root."),
    ("`LC_ALL`, `LC_CTYPE`, `LANG`", "Determine whether a terminal shows characters beyond ASCII."),
    ("`NO_COLOR`, `TERM`", "No colour is used if `NO_COLOR` is set, or if `TERM` is `dumb`."),
];

fn files(roff: &mut Roff) {
    roff.section("Files");
    for (path, meaning) in FILES {
        roff.tagged(&Inline::italic(path), &[Inline::roman(meaning)]);
    }
}

const FILES: [(&str, &str); 5] = [
    ("/etc/edgecert/config.toml", "Configuration of the host."),
    ("~/.config/edgecert/config.toml", "Configuration of a user."),
    ("/etc/edgecert/api-key", "Usual location of the API key; mode 0600."),
    ("/var/lib/edgecert/", "State directory of root."),
    ("~/.local/state/edgecert/", "State directory of a user."),
];
