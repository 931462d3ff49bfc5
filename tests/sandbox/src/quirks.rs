//! What `edge-api.md` leaves open, as a table of sensible variants. A seed draws one of each; seed 0 takes the
//! first, the plain choice. `QUIRKS.md` beside `Cargo.toml` shows this table to readers; a test keeps it so.

/// The `type` that the store writes for what a customer uploaded; shown as `uploaded_type` has it.
pub(crate) const UPLOADED: &str = "upload";

macro_rules! quirks {
    ($($field:ident: $name:ident, $what:literal { $first:ident = $first_text:literal
       $(, $variant:ident = $text:literal)* $(,)? })+) => {
        $(
            #[doc = $what]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) enum $name {
                #[doc = $first_text]
                $first,
                $(#[doc = $text] $variant),*
            }
        )+

        /// One variant of everything that is open.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Quirks {
            pub(crate) seed: u64,
            $(pub(crate) $field: $name),+
        }

        impl Quirks {
            /// Draws by seed.
            pub(crate) fn new(seed: u64) -> Self {
                let mut dice = Dice(seed);
                Self { seed, $($field: dice.draw($name::$first, &[$($name::$variant),*])),+ }
            }
        }

        /// What is open and its variants, the plain one first.
        pub(crate) const TABLE: &[(&str, &[&str])] =
            &[$(($what, &[$first_text $(, $text)*])),+];
    };
}

quirks! {
    cert_list: CertList, "4.1: wrapper of the certificate list" {
        Certs = "`{\"certs\":[…],\"total\":N}`",
        Bare = "`[…]`",
        Data = "`{\"ok\":true,\"data\":[…]}`",
        List = "`{\"list\":[…],\"page\":1,\"total\":N}`",
    }
    cert_domain: CertDomain, "2.1: `domain` of a record whose certificate has several names" {
        Declared = "the domain of the upload, which is what the record exists for",
        Commas = "`a.example,b.example`; it exists for each of them",
        Spaced = "`a.example, b.example`; it exists for each of them",
    }
    uploaded_type: UploadedType, "2.1: `type` of an uploaded certificate" {
        Upload = "`upload`",
        Custom = "`custom`",
        Empty = "an empty string",
    }
    bound_sites: BoundSites, "4.2: elements of `bound_sites`" {
        Objects = "`{\"id\":10,\"domain\":\"a.example\"}`",
        Numbers = "`10`",
        Strings = "`\"10\"`",
        Domains = "`\"a.example\"`",
        SiteIds = "`{\"site_id\":10}`",
    }
    foreign_domain: ForeignDomain, "7: upload for a domain that is not the caller's" {
        Forbidden = "403",
        NotFound = "404",
        BadRequest = "400",
        Unprocessable = "422",
    }
    record_body: RecordBody, "4.2: answer of `POST /api/certs`" {
        Id = "`{\"ok\":true,\"id\":\"1042\"}`",
        Cert = "`{\"ok\":true,\"cert\":{…}}`",
    }
    foreign_cert: ForeignCert, "4.3: download of a record that is not there or not the caller's" {
        NotFound = "404",
        Forbidden = "403",
    }
    made: Made, "4.2, 4.6: status when something new was made" {
        Ok = "200",
        Created = "201",
    }
    one_site: OneSite, "4.5: one site" {
        Bare = "`{…}`",
        Site = "`{\"site\":{…}}`",
        OkSite = "`{\"ok\":true,\"site\":{…}}`",
    }
    no_cert: NoCert, "2.3: `cert_id` of a site without a certificate" {
        Null = "`null`",
        Zero = "`0`",
        Absent = "absent",
    }
    site_status: SiteStatus, "3: values of `site_status` (on, switched off, over the limit)" {
        Running = "`running`, `stopped`, `overlimit`",
        Active = "`active`, `disabled`, `disabled`",
        Digits = "`1`, `0`, `2`",
    }
    no_reason: NoReason, "2.3: `disabled_reason` when there is none" {
        Empty = "an empty string",
        Null = "`null`",
        Absent = "absent",
    }
    tls_settings: TlsSettings, "2.3: types of `ssl_mode`, `ssl_ciphers`, `hsts`, `ocsp_stapling` when never set" {
        Words = "`\"intermediate\"`, `\"\"`, `false`, `false`",
        Numbers = "`2`, `[]`, `0`, `1`",
        Objects = "`{\"min\":\"1.2\"}`, `null`, `{\"enabled\":false}`, `\"off\"`",
    }
    time: Time, "2.3, 4.2: ISO 8601" {
        Utc = "`2030-01-01T00:00:00Z`",
        Offset = "`2030-01-01T00:00:00+00:00`",
        Millis = "`2030-01-01T00:00:00.000Z`",
        East = "`2030-01-01T08:00:00+08:00`",
        Naive = "`2030-01-01T00:00:00`",
    }
    switched: Switched, "4.8, 4.9: answer of enable, disable and delete" {
        Ok = "`{\"ok\":true}`",
        NoContent = "204 without a body",
        Empty = "200 with an empty body",
        Text = "200 with the text `success`",
        Detailed = "`{\"ok\":true,\"id\":10,\"message\":\"done\"}`",
    }
    enable_refused: EnableRefused, "7: enable while the package's traffic is exceeded" {
        Conflict = "409",
        Forbidden = "403",
        PaymentRequired = "402",
        BadRequest = "400",
        OkFalse = "200 with `\"ok\":false`",
        Silent = "answered as if it had succeeded; the site stays disabled",
    }
    no_package: NoPackage, "7: create with no usable package or with another account's" {
        BadRequest = "400",
        PaymentRequired = "402",
        Forbidden = "403",
        OkFalse = "200 with `\"ok\":false`",
    }
    taken: Taken, "create for a domain that is a site already" {
        Conflict = "409",
        BadRequest = "400",
        OkFalse = "200 with `\"ok\":false`",
    }
    error_body: ErrorBody, "7: body of an error" {
        Error = "`{\"ok\":false,\"error\":\"…\"}`",
        Message = "`{\"code\":40001,\"message\":\"…\"}`",
        Nested = "`{\"error\":{\"code\":\"…\",\"message\":\"…\"}}`",
        Detail = "`{\"detail\":[{\"msg\":\"…\"}]}`",
        Text = "plain text",
        Html = "an HTML page",
        Empty = "empty",
    }
    extras: Extras, "unknown fields in every object" {
        Without = "none",
        Flat = "`request_id`, `server_time`",
        Nested = "`meta` with an `id`, `ok` and `domain` of its own",
    }
}

/// `SplitMix64`: the same draw on every machine.
struct Dice(u64);

impl Dice {
    fn draw<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        if self.0 == 0 {
            return first;
        }
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15).max(1);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let index = usize::try_from((z ^ (z >> 31)) >> 33).unwrap_or(0) % (others.len() + 1);
        index.checked_sub(1).and_then(|index| others.get(index)).copied().unwrap_or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_0_is_plain_and_fifty_others_show_every_variant() {
        let drawn = |seed| -> Vec<String> {
            let shown = format!("{:?}", Quirks::new(seed));
            shown.trim_end_matches(" }").split(", ").skip(1).map(str::to_owned).collect()
        };
        assert_eq!(Quirks::new(0).error_body, ErrorBody::Error);
        assert_eq!(Quirks::new(0).extras, Extras::Without);
        for (index, (what, variants)) in TABLE.iter().enumerate() {
            let mut seen: Vec<String> = (1..=50).map(|seed| drawn(seed)[index].clone()).collect();
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), variants.len(), "{what}: {seen:?}");
        }
    }
}
