//! Punycode encoding (RFC 3492, section 6.3) with the parameters of section 5.

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const INITIAL_BIAS: u32 = 72;
const INITIAL_N: u32 = 128;

/// Encodes a label, without the prefix `xn--`. Returns `None` on overflow.
pub(crate) fn encode(label: &str) -> Option<String> {
    let points: Vec<u32> = label.chars().map(u32::from).collect();
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(out.len()).ok()?;
    if basic > 0 {
        out.push('-');
    }
    let (mut n, mut delta, mut bias, mut handled) = (INITIAL_N, 0_u32, INITIAL_BIAS, basic);
    while usize::try_from(handled).ok()? < points.len() {
        let next = points.iter().copied().filter(|&point| point >= n).min()?;
        delta = delta.checked_add((next - n).checked_mul(handled + 1)?)?;
        n = next;
        for &point in &points {
            if point < n {
                delta = delta.checked_add(1)?;
            }
            if point == n {
                push_delta(&mut out, delta, bias)?;
                bias = adapt(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        n += 1;
    }
    Some(out)
}

/// Appends `delta` as a variable-length integer.
fn push_delta(out: &mut String, delta: u32, bias: u32) -> Option<()> {
    let mut q = delta;
    let mut k = BASE;
    loop {
        let t = if k <= bias { T_MIN } else { (k - bias).min(T_MAX) };
        if q < t {
            out.push(digit(q)?);
            return Some(());
        }
        out.push(digit(t + (q - t) % (BASE - t))?);
        q = (q - t) / (BASE - t);
        k += BASE;
    }
}

/// Returns the bias after a code point was encoded (RFC 3492, section 6.1).
fn adapt(delta: u32, count: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / DAMP } else { delta / 2 };
    delta += delta / count;
    let mut k = 0;
    while delta > (BASE - T_MIN) * T_MAX / 2 {
        delta /= BASE - T_MIN;
        k += BASE;
    }
    k + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

/// Maps 0 to 25 to `a` to `z`, and 26 to 35 to `0` to `9`.
fn digit(value: u32) -> Option<char> {
    match u8::try_from(value).ok()? {
        letter @ 0..=25 => Some(char::from(b'a' + letter)),
        number @ 26..=35 => Some(char::from(b'0' + number - 26)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3492, section 7.1, and everyday names.
    #[test]
    fn rfc_samples_are_encoded() {
        let rows = [
            ("bücher", "bcher-kva"),
            ("例え", "r8jz45g"),
            ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
            ("3年b組金八先生", "3b-ww4c5e180e575a65lsy2b"),
        ];
        for (label, expected) in rows {
            assert_eq!(encode(label).as_deref(), Some(expected), "{label}");
        }
    }
}
