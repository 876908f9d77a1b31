//! Hashes of files.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The SHA-256 of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Sha256(pub [u8; 32]);

impl Sha256 {
    /// The hash of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The hash from its bytes, if there are 32 of them.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl From<Sha256> for String {
    fn from(hash: Sha256) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for Sha256 {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Sha256 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digit =
            |place: usize| text.get(2 * place..2 * place + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let mut hash = [0; 32];
        for (place, byte) in hash.iter_mut().enumerate() {
            *byte = digit(place)
                .filter(|_| text.len() == 64 && text.is_ascii())
                .ok_or_else(|| format!("{text:?} is not a SHA-256: give 64 hexadecimal digits"))?;
        }
        Ok(Self(hash))
    }
}
