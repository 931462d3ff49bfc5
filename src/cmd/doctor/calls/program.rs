//! The programs whose calls are searched for: edgecert, and the ACME clients that run it.

/// A program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cmd::doctor) enum Program {
    #[default]
    Edgecert,
    Certbot,
    AcmeSh,
    Lego,
    Dehydrated,
}

/// The simulated service, which is not edgecert itself.
const SANDBOX: &str = "edgecert-sandbox";

/// What the timer of certbot's snap runs with `snap run`.
pub(in crate::cmd::doctor) const SNAP_APP: &str = "certbot.renew";

impl Program {
    pub(in crate::cmd::doctor) fn name(self) -> &'static str {
        match self {
            Self::Edgecert => "edgecert",
            Self::Certbot => "certbot",
            Self::AcmeSh => "acme.sh",
            Self::Lego => "lego",
            Self::Dehydrated => "dehydrated",
        }
    }

    /// Whether a file of this name is the program.
    pub(super) fn is_named(self, name: &str) -> bool {
        // Earlier versions were called letsencrypt.
        let is_certbot = || [SNAP_APP, "certbot-auto", "letsencrypt", "letsencrypt-auto"].contains(&name);
        name == self.name() || self == Self::Certbot && is_certbot()
    }

    /// Whether a file of this name, unless it is a script, is the program: `edgecert-1.2`, `lego_linux_amd64`.
    pub(super) fn may_be_named(self, name: &str) -> bool {
        name.starts_with(self.name()) && name != SANDBOX
    }
}
