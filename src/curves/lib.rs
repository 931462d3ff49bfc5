//! The NIST curves: the public point that belongs to a private scalar.
//!
//! A crate of its own because generic code is compiled in the crate that calls it: here for speed, in the hook for size.

use p256::elliptic_curve::array::typenum::Unsigned as _;
use p256::elliptic_curve::sec1::{FromSec1Point, ModulusSize, ToSec1Point};
use p256::elliptic_curve::{AffinePoint, CurveArithmetic, FieldBytesSize, PublicKey, SecretKey};
use zeroize::Zeroizing;

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
            Self::P256 => derive::<p256::NistP256>(scalar),
            Self::P384 => derive::<p384::NistP384>(scalar),
            Self::P521 => derive::<p521::NistP521>(scalar),
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

fn derive<C>(scalar: &[u8]) -> Option<Vec<u8>>
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
    Some(encoded(&SecretKey::<C>::from_slice(&padded).ok()?.public_key()))
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
