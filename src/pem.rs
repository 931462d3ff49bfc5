//! PEM as ACME clients write it (RFC 7468).
//!
//! Lenient where nothing is ambiguous: line endings, a byte order mark, text between blocks, older labels. Defective
//! blocks are returned as such; `bundle` decides what they mean. The only module that uses rustls-pemfile.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr_iter;
use memchr::memmem::Finder;
use rustls_pemfile::Item;
use zeroize::Zeroizing;

use crate::secret::Secret;
use crate::text::sanitize;

/// A parsed PEM file.
pub struct Document {
    /// The blocks in order.
    pub blocks: Vec<Block>,
    /// The repairs made while parsing, as noun phrases for messages.
    pub cleaned: BTreeSet<String>,
}

/// One block of a PEM file.
pub enum Block {
    /// An X.509 certificate in DER. OpenSSL's `TRUSTED CERTIFICATE` has bytes of its own after it.
    Certificate(Vec<u8>),
    /// A private key in DER, in the format that its label names.
    Key(KeyFormat, Zeroizing<Vec<u8>>),
    /// A private key encrypted with a passphrase, in PKCS#8 or with a `Proc-Type` header.
    EncryptedKey,
    /// A well-formed block of another kind; holds its label, sanitized.
    Other(String),
    /// A block that cannot be decoded, or all blocks if there are more than `MAX_BLOCKS`; holds a description.
    Broken(String),
}

/// The structure in which a private key is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFormat {
    /// `RSA PRIVATE KEY` (RFC 8017, appendix A.1.2)
    Pkcs1,
    /// `EC PRIVATE KEY` (RFC 5915)
    Sec1,
    /// `PRIVATE KEY` (RFC 5958)
    Pkcs8,
}

/// More blocks than any chain with its key has. Each certificate is compared with every other one.
const MAX_BLOCKS: usize = 64;

/// Parses a PEM file. Defects are part of the result.
pub fn parse(bytes: &[u8]) -> Document {
    let (mut blocks, mut cleaned) = (Vec::new(), BTreeSet::new());
    let text = normalize(bytes, &mut cleaned);
    let unterminated = |(label, _): (&str, Vec<&str>)| broken(label, "without an END line");
    // Label and lines of the block that has begun.
    let mut open: Option<(&str, Vec<&str>)> = None;
    for raw in text.lines() {
        if blocks.len() >= MAX_BLOCKS {
            let found = format!("more than {MAX_BLOCKS} PEM blocks");
            return Document { blocks: vec![Block::Broken(found)], cleaned };
        }
        let line = raw.trim();
        if line.len() != raw.len() || line.is_empty() {
            cleaned.insert("whitespace".into());
        }
        if let Some(label) = boundary_label(line, BEGIN) {
            if standard_label(label) != label {
                cleaned.insert("a non-standard label".into());
            }
            blocks.extend(open.replace((label, Vec::new())).map(unterminated));
        } else if let Some(end) = boundary_label(line, END) {
            match open.take() {
                Some((label, body)) if label == end => blocks.push(decode(label, &body)),
                Some((label, _)) => blocks.push(broken(label, &format!("that ends as `{}`", sanitize(end)))),
                // acmed overwrites a longer file without truncating it first.
                None => _ = cleaned.insert("the rest of an older file".into()),
            }
        } else if !line.is_empty() {
            match &mut open {
                Some((_, body)) => body.push(line),
                None => _ = cleaned.insert("text outside the blocks".into()),
            }
        }
    }
    blocks.extend(open.map(unterminated));
    // The file may be in the middle of being written.
    let last = text.lines().last().unwrap_or_default().trim();
    let begins = last.starts_with(BEGIN) || !last.is_empty() && BEGIN.trim_end().starts_with(last);
    if begins && boundary_label(last, BEGIN).is_none() && !text.ends_with('\n') {
        blocks.push(Block::Broken("a block that is cut off in its first line".into()));
    }
    Document { blocks, cleaned }
}

/// Decodes the certificates of a file and ignores all else, much faster than `parse`: one after another, because together
/// those of a trust store would take more memory than all else. `None` stands for a damaged block.
pub(crate) fn certificates(file: &[u8]) -> impl Iterator<Item = Option<Vec<u8>>> {
    // Made once, because `sync` looks into thousands of files.
    static MARKS: LazyLock<[Finder<'_>; 2]> =
        LazyLock::new(|| ["-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"].map(Finder::new));
    let [begin, end] = &*MARKS;
    let before = |at: &usize| file.get(..*at)?.iter().rev().find(|byte| !b" \t".contains(byte));
    begin.find_iter(file).filter(move |at| before(at) != Some(&b'#')).map(move |at| {
        let block = file.get(at + begin.needle().len()..)?;
        let block = block.get(..end.find(block)?)?;
        // The decoder would skip line ends byte by byte, which takes longer than to decode.
        let ends = memchr_iter(b'\n', block).chain([block.len()]);
        let lines = ends.scan(0, |start, end| block.get(std::mem::replace(start, end + 1)..end));
        // It is not secret, so this need not take constant time.
        base64_simd::forgiving_decode_to_vec(&lines.collect::<Vec<_>>().concat()).ok()
    })
}

/// Encodes DER as one PEM block with lines of 64 characters.
pub fn encode(label: &str, der: &[u8]) -> Secret {
    let body = Zeroizing::new(STANDARD.encode(der));
    let lines = body.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap_or_default());
    Secret::new(write(label, lines))
}

impl Block {
    /// What messages call a block of another kind than the expected one; `None` for a defective block.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Certificate(_) => Some("a certificate".into()),
            Self::Key(..) | Self::EncryptedKey => Some("a private key".into()),
            Self::Other(label) => Some(format!("a PEM block `{label}`")),
            Self::Broken(_) => None,
        }
    }
}

impl KeyFormat {
    /// The label of RFC 7468 and its predecessors.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pkcs1 => "RSA PRIVATE KEY",
            Self::Sec1 => "EC PRIVATE KEY",
            Self::Pkcs8 => "PRIVATE KEY",
        }
    }
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// Removes byte order marks, which concatenated files also have in the middle, unifies line endings and puts each
/// boundary on its own line. Bytes that are not UTF-8 are replaced: in a block, that makes its base64 invalid.
fn normalize(bytes: &[u8], cleaned: &mut BTreeSet<String>) -> Zeroizing<String> {
    const REPLACEMENTS: [(&str, &str, &str); 4] = [
        ("\u{feff}", "", "a byte order mark"),
        ("\r\n", "\n", "line endings"),
        ("\r", "\n", "line endings"),
        // Concatenated files without a newline at the end.
        ("----------BEGIN ", "-----\n-----BEGIN ", "a missing newline"),
    ];
    let mut text = Zeroizing::new(String::from_utf8_lossy(bytes).into_owned());
    for (found, replacement, name) in REPLACEMENTS {
        if text.contains(found) {
            // Allocated once, as in `write`: no replacement is twice as long.
            let mut replaced = Zeroizing::new(String::with_capacity(2 * text.len()));
            for (index, part) in text.split(found).enumerate() {
                replaced.extend([if index > 0 { replacement } else { "" }, part]);
            }
            text = replaced;
            cleaned.insert(name.into());
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        cleaned.insert("a missing newline".into());
    }
    text
}

/// Returns the standard equivalent of a label.
fn standard_label(label: &str) -> &str {
    match label {
        "X509 CERTIFICATE" | "TRUSTED CERTIFICATE" => "CERTIFICATE",
        "ED25519 PRIVATE KEY" => "PRIVATE KEY",
        other => other,
    }
}

/// Returns the label of a boundary line.
fn boundary_label<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix("-----")
}

fn broken(label: &str, fault: &str) -> Block {
    Block::Broken(format!("a PEM block `{}` {fault}", sanitize(label)))
}

fn decode(label: &str, body: &[&str]) -> Block {
    let is_encrypted = |line: &&str| line.starts_with("Proc-Type:") && line.contains("ENCRYPTED");
    if label == "ENCRYPTED PRIVATE KEY" || body.iter().any(is_encrypted) {
        return Block::EncryptedKey;
    }
    // Headers have a colon. RFC 1421 allows them, and RFC 7468 does not.
    let lines = body.iter().copied().filter(|line| !line.contains(':'));
    let text = Zeroizing::new(write(standard_label(label), lines));
    let key = |format, der: &[u8]| Block::Key(format, Zeroizing::new(der.to_vec()));
    match rustls_pemfile::read_one_from_slice(text.as_bytes()) {
        Ok(Some((Item::X509Certificate(der), _))) => Block::Certificate(der.to_vec()),
        Ok(Some((Item::Pkcs1Key(der), _))) => key(KeyFormat::Pkcs1, der.secret_pkcs1_der()),
        Ok(Some((Item::Sec1Key(der), _))) => key(KeyFormat::Sec1, der.secret_sec1_der()),
        Ok(Some((Item::Pkcs8Key(der), _))) => key(KeyFormat::Pkcs8, der.secret_pkcs8_der()),
        Ok(_) => Block::Other(sanitize(label)),
        Err(_) => broken(label, "with invalid base64"),
    }
}

/// Writes a block. Its text is allocated once at full size: growing would leave copies behind that are not zeroized.
fn write<'a>(label: &str, lines: impl Iterator<Item = &'a str> + Clone) -> String {
    let size = lines.clone().map(|line| line.len() + 1).sum::<usize>() + 2 * label.len() + 40;
    let mut text = String::with_capacity(size);
    text.extend([BEGIN, label, "-----\n"]);
    lines.for_each(|line| text.extend([line, "\n"]));
    text.extend([END, label, "-----\n"]);
    text
}

#[cfg(test)]
mod tests;
