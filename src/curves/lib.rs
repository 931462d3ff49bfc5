//! The NIST curves: the public point that belongs to a private scalar.
//!
//! A crate of its own because generic code is compiled in the crate that calls it: here for speed, in the hook for size.
//!
//! The multiplication is a comb of four teeth (Lim and Lee, 1994): the scalar is cut into four pieces that share their
//! doublings, which takes a quarter of them. The libraries' own tables do the same and more, but are computed refresh in each
//! process, which for one multiplication costs more than it saves; a comb's are small enough to stand in the source.

mod sums;

use p256::elliptic_curve::array::typenum::Unsigned as _;
use p256::elliptic_curve::group::Group as _;
use p256::elliptic_curve::sec1::{FromSec1Point, ModulusSize, ToSec1Point};
use p256::elliptic_curve::subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use p256::elliptic_curve::{
    AffinePoint, CurveArithmetic, FieldBytesSize, ProjectivePoint, PublicKey, SecretKey,
};
use zeroize::Zeroizing;

/// In how many pieces the scalar is cut.
const TEETH: usize = 4;

/// A curve of FIPS 186.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the names of the standard")]
pub enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// The public point of a private scalar, uncompressed (SEC 1, section 2.3.3). Zeros may be missing before the
    /// scalar or be too many. `None`: zero, or not below the order of the curve.
    pub fn derive(self, scalar: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::P256 => derive::<p256::NistP256>(scalar, &sums::P256),
            Self::P384 => derive::<p384::NistP384>(scalar, &sums::P384),
            Self::P521 => derive::<p521::NistP521>(scalar, &sums::P521),
        }
    }

    /// The same point uncompressed; `None` where it is not on the curve.
    pub fn uncompressed(self, point: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::P256 => uncompressed::<p256::NistP256>(point),
            Self::P384 => uncompressed::<p384::NistP384>(point),
            Self::P521 => uncompressed::<p521::NistP521>(point),
        }
    }
}

fn derive<C>(scalar: &[u8], sums: &[&[u8]]) -> Option<Vec<u8>>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
{
    let zeros = scalar.iter().take_while(|byte| **byte == 0).count();
    let significant = scalar.get(zeros..)?;
    let padding = FieldBytesSize::<C>::USIZE.checked_sub(significant.len())?;
    // Never moved while it grows: a copy left behind would not be wiped.
    let mut padded = Zeroizing::new(Vec::with_capacity(FieldBytesSize::<C>::USIZE));
    padded.resize(padding, 0);
    padded.extend_from_slice(significant);
    // Refuses zero and what is not below the order.
    SecretKey::<C>::from_slice(&padded).ok()?;
    let point: AffinePoint<C> = multiply::<C>(&padded, sums)?.into();
    PublicKey::<C>::from_affine(point).ok().map(|point| encoded(&point))
}

/// The scalar, of the curve's full length, times the generator. Neither branches nor addresses depend on the scalar.
fn multiply<C>(scalar: &[u8], sums: &[&[u8]]) -> Option<ProjectivePoint<C>>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
{
    let read = |sum: &&[u8]| PublicKey::<C>::from_sec1_bytes(sum).ok().map(|point| *point.as_affine());
    let sums: Vec<AffinePoint<C>> = sums.iter().map(read).collect::<Option<_>>()?;
    let piece = 8 * scalar.len() / TEETH;
    let bit = |at: usize| scalar.iter().rev().nth(at / 8).map_or(0, |byte| byte >> (at % 8) & 1);
    let sum = |at: usize| {
        let wanted = (0..TEETH).rev().fold(0, |digits, tooth| digits << 1 | bit(tooth * piece + at));
        let mut sum = AffinePoint::<C>::default();
        for (digits, candidate) in (1u8..).zip(&sums) {
            sum.conditional_assign(candidate, digits.ct_eq(&wanted));
        }
        sum
    };
    let first = ProjectivePoint::<C>::from(sum(piece.checked_sub(1)?));
    Some((0..piece - 1).rev().fold(first, |product, at| product.double() + sum(at)))
}

fn uncompressed<C>(point: &[u8]) -> Option<Vec<u8>>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
{
    PublicKey::<C>::from_sec1_bytes(point).ok().map(|point| encoded(&point))
}

fn encoded<C>(point: &PublicKey<C>) -> Vec<u8>
where
    C: CurveArithmetic,
    FieldBytesSize<C>: ModulusSize,
    AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
{
    point.to_sec1_point(false).as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The library's own multiplication.
    fn expected<C>(scalar: &[u8]) -> Option<Vec<u8>>
    where
        C: CurveArithmetic,
        FieldBytesSize<C>: ModulusSize,
        AffinePoint<C>: FromSec1Point<C> + ToSec1Point<C>,
    {
        SecretKey::<C>::from_slice(scalar).ok().map(|key| encoded(&key.public_key()))
    }

    #[test]
    fn the_comb_does_what_the_library_does() {
        let mut dice = 1u64;
        for round in 0..64 {
            let mut scalar = vec![0u8; 66];
            for byte in &mut scalar {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Few bits set, then many, then any.
                *byte = match round % 3 {
                    0 => u8::from(dice >> 60 == 0),
                    1 => 0xff ^ u8::from(dice >> 60 == 0),
                    _ => dice.to_be_bytes()[2],
                };
            }
            // The order of P-521 is a little above 2^520.
            scalar[..2].copy_from_slice(&[0, dice.to_be_bytes()[1] & 1]);
            assert_eq!(Curve::P521.derive(&scalar), expected::<p521::NistP521>(&scalar));
            let scalar = &scalar[2..];
            assert_eq!(Curve::P256.derive(&scalar[..32]), expected::<p256::NistP256>(&scalar[..32]));
            assert_eq!(Curve::P384.derive(&scalar[..48]), expected::<p384::NistP384>(&scalar[..48]));
        }
    }

    #[test]
    fn the_smallest_and_what_is_none() {
        for (curve, length) in [(Curve::P256, 32), (Curve::P384, 48), (Curve::P521, 66)] {
            let mut one = vec![0; length];
            assert_eq!(curve.derive(&one), None, "zero");
            one[length - 1] = 1;
            assert_eq!(curve.derive(&one), curve.derive(&[1]), "leading zeros");
            assert_eq!(curve.derive(&vec![0xff; length]), None, "above the order");
        }
    }

    /// `sum` adds up the teeth whose bits are set in `digits`.
    fn is_the_sum(curve: Curve, length: usize, digits: usize, sum: &[u8]) {
        let mut scalar = vec![0; length];
        for tooth in (0..TEETH).filter(|tooth| digits >> tooth & 1 == 1) {
            let at = tooth * 8 * length / TEETH;
            scalar[length - 1 - at / 8] = 1 << (at % 8);
        }
        let expected = match curve {
            Curve::P256 => expected::<p256::NistP256>(&scalar),
            Curve::P384 => expected::<p384::NistP384>(&scalar),
            Curve::P521 => expected::<p521::NistP521>(&scalar),
        };
        assert_eq!(expected.as_deref(), Some(sum), "{curve:?}, {digits}");
    }

    #[test]
    fn the_sums_are_those_of_the_teeth() {
        for digits in 1..1 << TEETH {
            is_the_sum(Curve::P256, 32, digits, sums::P256[digits - 1]);
            is_the_sum(Curve::P384, 48, digits, sums::P384[digits - 1]);
            is_the_sum(Curve::P521, 66, digits, sums::P521[digits - 1]);
        }
    }
}
