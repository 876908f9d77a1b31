//! Versioned files of tensors with a checksum.

use std::fmt::{Display, Write as _};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::arrays::{Arrays, Hashing, array_line};
use super::reader::Reader;
use super::source::Source;
use super::{Header, Tensors};
use crate::error::{ContentError, Parsed};

/// The newest version of the format.
const VERSION: u32 = 5;

/// The first version whose checksum is that of pieces.
const FIRST_VERSION_OF_PIECES: u32 = 5;

/// The arrays that need a version, newest first; a router without any of them has version 1.
const NEEDS: [(&str, u32); 5] =
    [("rows.leaves", VERSION), ("trees.bootstrap", 4), ("axis.0.groups", 3), ("trees.scores", 3), ("trees.roots", 2)];

/// The version of a file: the oldest that can hold its arrays.
pub(super) fn version_of(has: impl Fn(&str) -> bool) -> u32 {
    NEEDS.iter().find(|(name, _)| has(name)).map_or(1, |(_, version)| *version)
}

/// The header of a kind of file: that of a router, alone or within another.
pub(crate) trait Sealed: Serialize + DeserializeOwned {
    /// The metadata key.
    const KEY: &'static str;
    /// What messages call the file.
    const WHAT: &'static str;
    /// The newest version of the format.
    const NEWEST: u32 = VERSION;

    /// The header of the router.
    fn router(&mut self) -> &mut Header;
}

/// The metadata key of policy files.
pub(crate) const KEY_OF_POLICIES: &str = "pointsman-policy";

/// The metadata keys of all kinds of files, and what messages call them.
const KINDS: [(&str, &str); 3] =
    [("pointsman", "router"), ("pointsman-part", "part of a calibration"), (KEY_OF_POLICIES, "policy")];

/// The metadata key of a file and what messages call it, if it is a file of this crate.
pub(crate) fn kind_of(source: &Source<'_>) -> Option<(&'static str, &'static str)> {
    let (_, metadata) = source.metadata().ok()?;
    let keys = metadata.metadata().as_ref()?;
    KINDS.into_iter().find(|(key, _)| keys.contains_key(*key))
}

/// Whether the bytes begin like a policy's, whatever follows: a file cut short has no header that can be read.
pub(crate) fn begins_like_policy(source: &Source<'_>) -> bool {
    /// The length of the header, and JSON around the first metadata key.
    const START_BYTES: usize = 64;
    let mut buffer = Vec::new();
    let start = source.bytes(0..START_BYTES.min(source.len()), &mut buffer).unwrap_or_default();
    let key = format!("\"{KEY_OF_POLICIES}\"");
    start.windows(key.len()).any(|bytes| bytes == key.as_bytes())
}

/// What the headers of all versions have in common.
#[derive(Debug, Deserialize)]
struct AnyHeader {
    version: u32,
}

/// The bytes of a file of these tensors, with its checksum.
pub(crate) fn seal<H: Sealed>(mut header: H, tensors: &Tensors<'_>) -> Parsed<Vec<u8>> {
    let views = tensors.views().map_err(|e| e.to_string())?;
    let (mut hash, hashing) = begin_checksum(&mut header)?;
    for (name, view) in &views {
        hash.update(array_line(name, view.dtype(), view.shape()));
        hashing.add(view.data(), &mut hash);
    }
    header.router().sha256 = hexadecimal(&hash.finalize());
    let header = serde_json::to_string(&header).map_err(|e| e.to_string())?;
    safetensors::serialize(views, Some([(H::KEY.to_owned(), header)].into())).map_err(|e| e.to_string())
}

/// Checks the version and the checksum of a file, then reads it.
pub(crate) fn unseal<H: Sealed, T>(
    source: &Source<'_>,
    read: impl FnOnce(&H, &mut Reader) -> Parsed<T>,
) -> Result<T, ContentError> {
    let damaged = |e: &dyn Display| ContentError::Damaged { what: H::WHAT, reason: e.to_string() };
    let (start, metadata) = source.metadata().map_err(|e| damaged(&e))?;
    let text = metadata.metadata().as_ref().and_then(|m| m.get(H::KEY));
    let text = text.ok_or_else(|| {
        let other = kind_of(source).map_or(String::new(), |(_, other)| format!(", it is a {other}"));
        damaged(&format!("no {} header{other}", H::KEY))
    })?;
    let AnyHeader { version } = serde_json::from_str(text).map_err(|e| damaged(&e))?;
    if version == 0 || version > H::NEWEST {
        return Err(ContentError::Version { what: H::WHAT, version, newest: H::NEWEST });
    }
    let mut header: H = serde_json::from_str(text).map_err(|e| damaged(&e))?;
    let claimed = std::mem::take(&mut header.router().sha256);
    let (mut hash, hashing) = begin_checksum(&mut header).map_err(|e| damaged(&e))?;
    let arrays = Arrays::read(source, start, &metadata, hashing, &mut hash).map_err(|e| damaged(&e))?;
    if claimed != hexadecimal(&hash.finalize()) {
        return Err(damaged(&"its checksum does not match"));
    }
    let needed = version_of(|name| arrays.has(name));
    let found = read(&header, &mut Reader::new(arrays)).map_err(|e| damaged(&e))?;
    // With too low a version, an older program would misread the file.
    let claimed = header.router().version;
    if claimed != needed {
        return Err(damaged(&format!("its format is {needed}, and it claims to be {claimed}")));
    }
    Ok(found)
}

/// SHA-256 over the header, its checksum still empty. Every tensor's name, type, shape and bytes follow, by name; how the bytes enter depends
/// on the version.
fn begin_checksum<H: Sealed>(header: &mut H) -> Parsed<(Sha256, Hashing)> {
    let hashing = match header.router().version >= FIRST_VERSION_OF_PIECES {
        true => Hashing::Pieces,
        false => Hashing::OneStream,
    };
    Ok((Sha256::new_with_prefix(serde_json::to_vec(header).map_err(|e| e.to_string())?), hashing))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
