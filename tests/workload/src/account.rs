//! The listings of an account, with all documented fields of sites and records.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::path::Path;

use anyhow::Result;

use crate::domain;

/// Writes the responses to `GET /api/me/sites` and `GET /api/certs` of an account with the sites of these numbers, each
/// bound to its own record.
pub fn write_listings(sites: &Path, certs: &Path, numbers: Range<usize>) -> Result<()> {
    let mut file = BufWriter::new(File::create(sites)?);
    write!(file, r#"{{"sites":["#)?;
    for number in numbers.clone() {
        let separator = if number == numbers.start { "" } else { "," };
        write!(file, "{separator}{}", site_json(number))?;
    }
    write!(file, r#"],"total":{}}}"#, numbers.len())?;
    file.flush()?;
    let mut file = BufWriter::new(File::create(certs)?);
    write!(file, r#"{{"certs":["#)?;
    for number in numbers.clone() {
        let (separator, domain) = (if number == numbers.start { "" } else { "," }, domain(number));
        write!(
            file,
            r#"{separator}{{"id":{number},"name":"{domain}","domain":"{domain}","type":"upload"}}"#
        )?;
    }
    write!(file, "]}}")?;
    Ok(file.flush()?)
}

/// A site of 890 bytes, as an element of the list and as the response to `GET /api/sites/{id}`.
pub fn site_json(number: usize) -> String {
    let domain = domain(number);
    format!(
        r#"{{"id":{number},"domain":"{domain}","cname":"s{number}.edge.invalid","enabled":true,"site_status":"running","disabled_reason":"","origins":[{{"addr":"192.0.2.10","weight":10,"status":true}},{{"addr":"192.0.2.11","weight":10,"status":true}}],"origin_protocol":"follow","origin_http_port":80,"origin_https_port":443,"http_enabled":true,"https_enabled":true,"force_https":true,"http2":true,"http3":false,"cert_id":{number},"ssl_mode":"intermediate","ssl_ciphers":"","hsts":false,"ocsp_stapling":true,"cache_rules":[{{"match":"/static/","ttl":86400}},{{"match":"/","ttl":0}}],"security":{{"waf":{{"enabled":true,"mode":"block"}},"cc":{{"enabled":true,"limit":600}}}},"access_control":{{"deny":["198.51.100.0/24"],"allow":[]}},"package_id":1,"config_synced":true,"load_balance":"weight","remark":"","created_at":"2026-03-01T08:00:00Z","updated_at":"2026-11-01T08:00:00Z"}}"#
    )
}
