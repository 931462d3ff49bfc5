//! Hints that several errors share: what to do about a file, or about the certificate of the service.

use std::io::ErrorKind as Io;

use crate::api::CertificateFault;

/// Hint for a bug in edgecert.
pub(crate) const INTERNAL_HINT: &str = "report this, with the command and its output";

/// How to use another state directory.
pub(super) const OTHER_STATE_DIR: &str = "name another directory with --state-dir";

/// What to do about a file that cannot be read.
pub(crate) fn read_hint(kind: Io) -> &'static str {
    match kind {
        Io::NotFound | Io::NotADirectory | Io::InvalidFilename => "check the path",
        Io::PermissionDenied => "run edgecert as a user that may read it",
        Io::IsADirectory => "name a file, not a directory",
        Io::FileTooLarge => "check the path; the file is too large for what it should hold",
        Io::InvalidData => "check the path; the file should hold text in UTF-8",
        Io::TimedOut => "check the program that writes to the pipe",
        _ => "check the path and its file system",
    }
}

/// What to do about a state directory that cannot be read.
pub(crate) fn state_dir_hint(kind: Io) -> &'static str {
    match kind {
        Io::PermissionDenied => "run edgecert as the user that owns it, or name another one with --state-dir",
        _ => "name the state directory with --state-dir",
    }
}

/// What to do about a state file that cannot be read, and is therefore kept.
pub(crate) fn state_file_hint(kind: Io) -> String {
    let repair = match kind {
        Io::PermissionDenied => "run edgecert as the user that owns it",
        _ => "examine the file and move it away",
    };
    format!("{repair}, or {OTHER_STATE_DIR}")
}

/// What to do about a file or directory that cannot be written; `elsewhere` says how to name another one.
pub(crate) fn write_hint(kind: Io, elsewhere: &str) -> String {
    let repair = match kind {
        Io::StorageFull | Io::QuotaExceeded => "free some space",
        Io::PermissionDenied | Io::ReadOnlyFilesystem => "make the directory writable for this user",
        Io::NotFound => "create the directory",
        // Something else is in its place.
        Io::AlreadyExists | Io::NotADirectory | Io::IsADirectory => return elsewhere.to_owned(),
        _ => "check the file system",
    };
    format!("{repair}, or {elsewhere}")
}

/// What to do about the certificate of the service. Only an unknown issuer is a question of trust.
pub(super) fn certificate_hint(fault: CertificateFault) -> &'static str {
    match fault {
        CertificateFault::UnknownIssuer => {
            "if the service uses a private CA, pass its certificate with --ca-file"
        }
        CertificateFault::Expired => {
            "check the clock of this host; if it is right, the service has to renew its certificate"
        }
        CertificateFault::NotValidYet => {
            "check the clock of this host; if it is right, wait until the certificate is valid"
        }
        CertificateFault::OtherName => "check the host in the base URL; the certificate has to name it",
        CertificateFault::IsCa => "issue a server certificate from that CA for the service",
        CertificateFault::Other(_) => "the service has to install another certificate",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_denied_permission_suggests_another_user() {
        let kinds = [
            Io::NotFound,
            Io::NotADirectory,
            Io::InvalidFilename,
            Io::IsADirectory,
            Io::FileTooLarge,
            Io::InvalidData,
            Io::TimedOut,
            Io::Other,
            Io::PermissionDenied,
        ];
        for kind in kinds {
            let is_denied = kind == Io::PermissionDenied;
            for hint in [read_hint(kind), state_dir_hint(kind), &state_file_hint(kind)] {
                assert_eq!(hint.contains("user"), is_denied, "{kind}: {hint}");
            }
        }
    }

    #[test]
    fn only_a_full_disk_suggests_making_room() {
        let rows = [
            (Io::StorageFull, "free some space, or X"),
            (Io::QuotaExceeded, "free some space, or X"),
            (Io::PermissionDenied, "make the directory writable for this user, or X"),
            (Io::ReadOnlyFilesystem, "make the directory writable for this user, or X"),
            (Io::NotFound, "create the directory, or X"),
            (Io::NotADirectory, "X"),
            (Io::Other, "check the file system, or X"),
        ];
        for (kind, expected) in rows {
            assert_eq!(write_hint(kind, "X"), expected, "{kind}");
        }
    }

    #[test]
    fn only_an_unknown_issuer_suggests_a_ca_file() {
        use CertificateFault as F;
        for fault in [F::UnknownIssuer, F::Expired, F::NotValidYet, F::OtherName, F::IsCa, F::Other("")] {
            assert_eq!(certificate_hint(fault).contains("--ca-file"), fault == F::UnknownIssuer, "{fault}");
        }
    }
}
