//! PEM text as clients write it: the blocks in it, whatever stands around them (RFC 7468).
//!
//! Tolerant where nothing can be mistaken (line ends, a byte order mark, text between blocks, older labels); what
//! is broken is returned as such and judged by `bundle`. The only user of rustls-pemfile.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pemfile::Item;
use zeroize::Zeroizing;

use crate::secret::Secret;
use crate::text::sanitize;

/// One block of a PEM text.
pub enum Block {
    /// An X.509 certificate in DER; an OpenSSL `TRUSTED CERTIFICATE` has bytes of its own behind it.
    Certificate(Vec<u8>),
    /// A private key in DER and the form that its label announces.
    Key(KeyForm, Zeroizing<Vec<u8>>),
    /// A private key that needs a passphrase (PKCS#8 or the older style with `Proc-Type`).
    EncryptedKey,
    /// Something else that is well formed, by its label.
    Other(String),
    /// A block that cannot be read, with the reason.
    Broken(String),
    /// The last one: the text goes on, and was not read further.
    More,
}

/// How a private key is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// `RSA PRIVATE KEY` (RFC 8017, appendix A.1.2)
    Pkcs1,
    /// `EC PRIVATE KEY` (RFC 5915)
    Sec1,
    /// `PRIVATE KEY` (RFC 5958)
    Pkcs8,
}

/// A text that was read.
pub struct Text {
    /// The blocks in order.
    pub blocks: Vec<Block>,
    /// What was cleaned on the way, in words.
    pub cleaned: Vec<&'static str>,
}

/// A text with more blocks is no chain and no key, and reading it further is work for nothing.
pub const MAX_BLOCKS: usize = 256;

/// Reads a text; nothing in it is an error here.
pub fn read(bytes: &[u8]) -> Text {
    let (normalised, mut cleaned) = normalised(bytes);
    let text = match &normalised {
        Some(text) => text.as_str(),
        None => std::str::from_utf8(bytes).unwrap_or_default(),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        note(&mut cleaned, "a missing line feed");
    }
    let mut blocks = Vec::new();
    let mut open: Option<(&str, Vec<&str>)> = None;
    for raw in text.lines() {
        let line = raw.trim();
        if blocks.len() >= MAX_BLOCKS {
            blocks.push(Block::More);
            return Text { blocks, cleaned };
        }
        if line.len() != raw.len() || line.is_empty() {
            note(&mut cleaned, "blank space");
        }
        if let Some(label) = marked(line, "-----BEGIN ") {
            if standard_label(label) != label {
                note(&mut cleaned, "an unusual label");
            }
            if let Some((unfinished, _)) = open.replace((label, Vec::new())) {
                blocks.push(unterminated(unfinished));
            }
        } else if let Some(end) = marked(line, "-----END ") {
            match open.take() {
                Some((label, body)) if label == end => blocks.push(decode(label, &body)),
                Some((label, _)) => {
                    blocks.push(Block::Broken(format!(
                        "a block `{}` that ends as `{}`",
                        sanitize(label),
                        sanitize(end)
                    )));
                }
                // The tail of an older, longer file that was written over (acmed): nothing begins here.
                None => note(&mut cleaned, "the tail of an earlier file"),
            }
        } else if !line.is_empty() {
            match &mut open {
                Some((_, body)) => body.push(line),
                None => note(&mut cleaned, "text around the blocks"),
            }
        }
    }
    blocks.extend(open.map(|(label, _)| unterminated(label)));
    // The last line of an earlier file's tail ends; one that is being written does not.
    if !text.ends_with('\n') && text.lines().last().is_some_and(is_cut_heading) {
        blocks.push(Block::Broken("the beginning of a block that is cut off".into()));
    }
    Text { blocks, cleaned }
}

/// Names what was cleaned, once.
fn note(cleaned: &mut Vec<&'static str>, what: &'static str) {
    if !cleaned.contains(&what) {
        cleaned.push(what);
    }
}

/// DER as one clean PEM block: 64 columns, line feeds, a line feed at the end.
pub fn write(label: &str, der: &[u8]) -> Secret {
    const COLUMNS: usize = 64;
    let body = Zeroizing::new(STANDARD.encode(der));
    // Never moved while it grows: a copy left behind would not be wiped.
    let mut text = String::with_capacity(body.len() + body.len() / COLUMNS + 2 * label.len() + 40);
    text.extend(["-----BEGIN ", label, "-----\n"]);
    let mut rest = body.as_str();
    while let Some((line, more)) =
        rest.split_at_checked(COLUMNS.min(rest.len())).filter(|(line, _)| !line.is_empty())
    {
        text.push_str(line);
        text.push('\n');
        rest = more;
    }
    text.extend(["-----END ", label, "-----\n"]);
    Secret::new(text)
}

impl Block {
    /// What to call it where something else was wanted; `None` for what is no block.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Certificate(_) => Some("a certificate".into()),
            Self::Key(..) | Self::EncryptedKey => Some("a private key".into()),
            Self::Other(label) => Some(format!("a block `{label}`")),
            Self::Broken(_) | Self::More => None,
        }
    }
}

impl KeyForm {
    /// The standard label of the form.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pkcs1 => "RSA PRIVATE KEY",
            Self::Sec1 => "EC PRIVATE KEY",
            Self::Pkcs8 => "PRIVATE KEY",
        }
    }
}

/// Line feeds only, no byte order mark, each boundary on a line of its own; bytes that are no UTF-8 can only stand
/// around the blocks. `None` where the text is so already, as nearly every one is: a copy would have to be wiped again.
fn normalised(bytes: &[u8]) -> (Option<Zeroizing<String>>, Vec<&'static str>) {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    const FAULTS: [(&str, &str, &str); 3] = [
        ("\r\n", "\n", "line ends"),
        ("\r", "\n", "line ends"),
        // `cat` of files without a line feed at their end.
        ("----------BEGIN ", "-----\n-----BEGIN ", "a missing line feed"),
    ];
    let clean = |text: &str| !text.contains('\r') && !text.contains("----------BEGIN ");
    if !bytes.starts_with(MARK) && std::str::from_utf8(bytes).is_ok_and(clean) {
        return (None, Vec::new());
    }
    let mut cleaned = Vec::new();
    let bytes = bytes.strip_prefix(MARK).map_or(bytes, |rest| {
        cleaned.push("a byte order mark");
        rest
    });
    let mut text = Zeroizing::new(String::from_utf8_lossy(bytes).into_owned());
    for (found, instead, name) in FAULTS {
        if text.contains(found) {
            text = Zeroizing::new(text.replace(found, instead));
            note(&mut cleaned, name);
        }
    }
    (Some(text), cleaned)
}

/// The label that a block should have.
fn standard_label(label: &str) -> &str {
    match label {
        "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => "CERTIFICATE",
        "ED25519 PRIVATE KEY" => "PRIVATE KEY",
        other => other,
    }
}

fn marked<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix("-----")
}

/// Whether a file ends within the heading of a block, because it is being written.
fn is_cut_heading(line: &str) -> bool {
    const BEGIN: &str = "-----BEGIN ";
    let line = line.trim();
    let begins = line.starts_with(BEGIN) || BEGIN.trim_end().starts_with(line);
    !line.is_empty() && begins && marked(line, BEGIN).is_none()
}

fn unterminated(label: &str) -> Block {
    Block::Broken(format!("a block `{}` without its end", sanitize(label)))
}

fn decode(label: &str, body: &[&str]) -> Block {
    if label == "ENCRYPTED PRIVATE KEY"
        || body.iter().any(|line| line.starts_with("Proc-Type:") && line.contains("ENCRYPTED"))
    {
        return Block::EncryptedKey;
    }
    let standard = standard_label(label);
    // RFC 7468 knows no headers, but RFC 1421 does: `Name: value` lines up to an empty one.
    let body = body.iter().filter(|line| !line.contains(':'));
    let size = body.clone().map(|line| line.len() + 1).sum::<usize>() + 2 * standard.len() + 40;
    let mut canonical = Zeroizing::new(String::with_capacity(size));
    canonical.extend(["-----BEGIN ", standard, "-----\n"]);
    for line in body {
        canonical.push_str(line);
        canonical.push('\n');
    }
    canonical.extend(["-----END ", standard, "-----\n"]);
    let key = |form, der: &[u8]| Block::Key(form, Zeroizing::new(der.to_vec()));
    match rustls_pemfile::read_one_from_slice(canonical.as_bytes()) {
        Ok(Some((Item::X509Certificate(der), _))) => Block::Certificate(der.to_vec()),
        Ok(Some((Item::Pkcs1Key(der), _))) => key(KeyForm::Pkcs1, der.secret_pkcs1_der()),
        Ok(Some((Item::Sec1Key(der), _))) => key(KeyForm::Sec1, der.secret_sec1_der()),
        Ok(Some((Item::Pkcs8Key(der), _))) => key(KeyForm::Pkcs8, der.secret_pkcs8_der()),
        Ok(_) => Block::Other(sanitize(label)),
        Err(_) => Block::Broken(format!("a block `{}` whose base64 is damaged", sanitize(label))),
    }
}

/// What a file without any block looks like, to say more than "no PEM".
pub fn describe(bytes: &[u8]) -> Cow<'static, str> {
    match bytes {
        [] => "it is empty".into(),
        // The length takes several bytes, or is that of the whole file, as in short keys.
        [0x30, length, rest @ ..] if (0x80..=0x84).contains(length) || usize::from(*length) == rest.len() => {
            "it looks like DER or PKCS#12; PEM is wanted".into()
        }
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is UTF-16 text; PEM is ASCII".into(),
        _ if bytes.starts_with(b"ssh-") => "it is an SSH key; PEM is wanted".into(),
        _ => "it holds no PEM block".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<String> {
        let kind = |block: &Block| match block {
            Block::Certificate(der) => format!("certificate {der:?}"),
            Block::Key(form, der) => format!("{form:?} {:?}", der.as_slice()),
            Block::EncryptedKey => "encrypted".into(),
            Block::Other(label) => format!("other {label}"),
            Block::Broken(why) => format!("broken: {why}"),
            Block::More => "more".into(),
        };
        read(text.as_bytes()).blocks.iter().map(kind).collect()
    }

    #[test]
    fn blocks_are_found_as_they_are_in_the_wild() {
        let rows: [(&str, &[&str]); 16] = [
            ("-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n", &["certificate [1, 2, 3]"]),
            (
                "-----BEGIN CERTIFICATE-----\r\nAQID\r\n-----END CERTIFICATE-----\r\n",
                &["certificate [1, 2, 3]"],
            ),
            ("-----BEGIN CERTIFICATE-----\rAQID\r-----END CERTIFICATE-----\r", &["certificate [1, 2, 3]"]),
            (
                "\u{feff}-----BEGIN CERTIFICATE-----\n\n AQ\n\tID \n-----END CERTIFICATE-----",
                &["certificate [1, 2, 3]"],
            ),
            (
                "Bag Attributes\n  x: y\n-----BEGIN TRUSTED CERTIFICATE-----\nAQID\n-----END TRUSTED CERTIFICATE-----\nbye",
                &["certificate [1, 2, 3]"],
            ),
            (
                "-----BEGIN EC PARAMETERS-----\nAQID\n-----END EC PARAMETERS-----\n-----BEGIN EC PRIVATE KEY-----\nAQ==\n-----END EC PRIVATE KEY-----\n",
                &["other EC PARAMETERS", "Sec1 [1]"],
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\nAQ==\n-----END RSA PRIVATE KEY-----\n", &["Pkcs1 [1]"]),
            (
                "-----BEGIN ED25519 PRIVATE KEY-----\nAQ==\n-----END ED25519 PRIVATE KEY-----\n",
                &["Pkcs8 [1]"],
            ),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAQ==\n-----END ENCRYPTED PRIVATE KEY-----\n",
                &["encrypted"],
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: X,00\n\nAQ==\n-----END RSA PRIVATE KEY-----\n",
                &["encrypted"],
            ),
            ("AAAA\n-----END CERTIFICATE-----\n", &[]),
            ("AAAA\n-----BEGIN CERTIF", &["broken: the beginning of a block that is cut off"]),
            ("AAAA\n---", &["broken: the beginning of a block that is cut off"]),
            ("AAAA\n---\n", &[]),
            ("-----BEGIN CERTIFICATE-----\nAQID\n", &["broken: a block `CERTIFICATE` without its end"]),
            (
                "-----BEGIN CERTIFICATE-----\nA\u{2764}\n-----END CERTIFICATE-----\n",
                &["broken: a block `CERTIFICATE` whose base64 is damaged"],
            ),
        ];
        for (text, wanted) in rows {
            assert_eq!(kinds(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn what_was_cleaned_is_named_once() {
        const BLOCK: &str = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
        let rows: [(String, &[&str]); 9] = [
            (BLOCK.into(), &[]),
            (BLOCK.repeat(2).replace('\n', "\r\n"), &["line ends"]),
            (BLOCK.replacen('\n', "\r", 1).replacen('\n', "\r\n", 1), &["line ends"]),
            (format!("\u{feff}{BLOCK}"), &["a byte order mark"]),
            (BLOCK.replace('\n', "\n \n"), &["blank space"]),
            (BLOCK.trim_end().repeat(2), &["a missing line feed"]),
            (BLOCK.replace("CERT", "X509 CERT").repeat(2), &["an unusual label"]),
            (format!("a\n{BLOCK}b\n"), &["text around the blocks"]),
            (format!("{BLOCK}-----END A-----\n-----END A-----\n"), &["the tail of an earlier file"]),
        ];
        for (text, wanted) in rows {
            assert_eq!(read(text.as_bytes()).cleaned, wanted, "{text:?}");
        }
    }

    #[test]
    fn reading_ends_at_the_last_block_that_is_allowed() {
        let all = "-----BEGIN A-----\n-----END A-----\n".repeat(MAX_BLOCKS);
        assert_eq!(kinds(&all).len(), MAX_BLOCKS);
        let more = kinds(&(all + "-----BEGIN A-----\n"));
        assert_eq!((more.len(), more.last().map(String::as_str)), (MAX_BLOCKS + 1, Some("more")));
    }

    #[test]
    fn what_is_written_reads_back_in_lines_of_64() {
        let der: Vec<u8> = (0..200).collect();
        let text = write("CERTIFICATE", &der);
        assert!(text.expose().lines().all(|line| line.len() <= 64));
        assert!(
            matches!(read(text.expose().as_bytes()).blocks.as_slice(), [Block::Certificate(back)] if *back == der)
        );
    }
}
