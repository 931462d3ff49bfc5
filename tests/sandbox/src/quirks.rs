//! Quirks: sensible variants of everything that `edge-api.md` leaves open. A seed draws one variant of each
//! quirk; seed 0 takes the first of each, the plain service. `QUIRKS.md` shows the table; a test keeps it up
//! to date.

macro_rules! quirks {
    ($($field:ident: $name:ident, $subject:literal { $first:ident = $first_text:literal
       $(, $variant:ident = $text:literal)* $(,)? })+) => {
        $(
            #[doc = $subject]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) enum $name {
                #[doc = $first_text]
                $first,
                $(#[doc = $text] $variant),*
            }
        )+

        /// One variant of each quirk.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Quirks {
            pub(crate) seed: u64,
            $(pub(crate) $field: $name),+
        }

        impl Quirks {
            /// Draws the variants for a seed. The order of the table is part of what a seed means.
            pub(crate) fn new(seed: u64) -> Self {
                let mut rng = SplitMix64(seed);
                Self { seed, $($field: rng.draw($name::$first, &[$($name::$variant),*])),+ }
            }
        }

        /// The open questions, and the variants of each, the plain one first.
        pub(crate) const TABLE: &[(&str, &[&str])] =
            &[$(($subject, &[$first_text $(, $text)*])),+];
    };
}

quirks! {
    cert_list: CertList, "4.1: wrapper of the certificate list" {
        Certs = "`{\"certs\":[…],\"total\":N}`",
        Bare = "`[…]`",
        Data = "`{\"ok\":true,\"data\":[…]}`",
        List = "`{\"list\":[…],\"page\":1,\"total\":N}`",
    }
    cert_domain: CertDomain, "2.1, 4.2: `domain` of a record whose certificate has several names, and what replaces the record" {
        Declared = "the domain of its upload; an upload for that domain",
        Commas = "`a.example,b.example`; an upload for any of them",
        Spaced = "`a.example, b.example`; an upload for any of them",
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
    unowned_domain: UnownedDomain, "7: upload for a domain that is not a site of the account" {
        Forbidden = "403",
        NotFound = "404",
        BadRequest = "400",
        Unprocessable = "422",
    }
    created_cert: CreatedCert, "4.2: response to `POST /api/certs`" {
        Id = "`{\"ok\":true,\"id\":\"1042\"}`",
        Cert = "`{\"ok\":true,\"cert\":{…}}`",
    }
    unavailable_cert: UnavailableCert, "4.3: download of a record that does not exist or belongs to another account" {
        NotFound = "404",
        Forbidden = "403",
    }
    created_status: CreatedStatus, "4.2, 4.6: status when a record or site was created" {
        Ok = "200",
        Created = "201",
    }
    single_site: SingleSite, "4.5: wrapper of a single site" {
        Bare = "`{…}`",
        Site = "`{\"site\":{…}}`",
        OkSite = "`{\"ok\":true,\"site\":{…}}`",
    }
    unbound_cert_id: UnboundCertId, "2.3: `cert_id` of a site without a certificate" {
        Null = "`null`",
        Zero = "`0`",
        Absent = "absent",
    }
    site_status: SiteStatus, "3: values of `site_status` (enabled, disabled by the customer, disabled by the system)" {
        Running = "`running`, `stopped`, `overlimit`",
        Active = "`active`, `disabled`, `disabled`",
        Digits = "`1`, `0`, `2`",
    }
    no_disabled_reason: NoDisabledReason, "2.3: `disabled_reason` if there is none" {
        Empty = "an empty string",
        Null = "`null`",
        Absent = "absent",
    }
    tls_settings: TlsSettings, "2.3: initial values of `ssl_mode`, `ssl_ciphers`, `hsts`, `ocsp_stapling`" {
        Strings = "`\"intermediate\"`, `\"\"`, `false`, `false`",
        Numbers = "`2`, `[]`, `0`, `1`",
        Objects = "`{\"min\":\"1.2\"}`, `null`, `{\"enabled\":false}`, `\"off\"`",
    }
    time_format: TimeFormat, "2.3, 4.2: ISO 8601 format" {
        Utc = "`2030-01-01T00:00:00Z`",
        Offset = "`2030-01-01T00:00:00+00:00`",
        Millis = "`2030-01-01T00:00:00.000Z`",
        East = "`2030-01-01T08:00:00+08:00`",
        Naive = "`2030-01-01T00:00:00`",
    }
    site_action: SiteAction, "4.8, 4.9: response to enable, disable and delete" {
        Ok = "`{\"ok\":true}`",
        NoContent = "204 without a body",
        Empty = "200 with an empty body",
        Text = "200 with the text `success`",
        Detailed = "`{\"ok\":true,\"id\":10,\"message\":\"done\"}`",
    }
    enable_refused: EnableRefused, "7: enable while the package is exhausted or expired" {
        Conflict = "409",
        Forbidden = "403",
        PaymentRequired = "402",
        BadRequest = "400",
        OkFalse = "200 with `\"ok\":false`",
        Silent = "reports success; the site stays disabled",
    }
    no_package: NoPackage, "7: create with no usable package or with another account's" {
        BadRequest = "400",
        PaymentRequired = "402",
        Forbidden = "403",
        OkFalse = "200 with `\"ok\":false`",
    }
    duplicate_site: DuplicateSite, "create for a domain that already has a site" {
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
    extra_fields: ExtraFields, "undocumented fields in every object" {
        None = "none",
        Flat = "`request_id`, `server_time`",
        Nested = "`meta` with an `id`, `ok` and `domain` of its own",
    }
}

/// `SplitMix64`, which draws the same variants on every platform.
struct SplitMix64(u64);

impl SplitMix64 {
    /// Draws one of the variants. State 0 always draws the first and stays 0.
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

    /// The variants that a seed draws, as the names of the enum variants.
    fn drawn(seed: u64) -> Vec<String> {
        let text = format!("{:?}", Quirks::new(seed));
        text.trim_end_matches(" }").split(", ").skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn seed_zero_draws_first_variants() {
        assert_eq!(Quirks::new(0).error_body, ErrorBody::Error);
        assert_eq!(Quirks::new(0).extra_fields, ExtraFields::None);
    }

    #[test]
    fn fifty_seeds_draw_every_variant() {
        for (index, (subject, variants)) in TABLE.iter().enumerate() {
            let mut seen: Vec<String> = (1..=50).map(|seed| drawn(seed)[index].clone()).collect();
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), variants.len(), "{subject}: {seen:?}");
        }
    }
}
