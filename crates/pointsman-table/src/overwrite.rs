//! Recognising a file that is about to be overwritten.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::csv::Records;
use crate::error::Result;
use crate::format::Format;
use crate::guard::guarded;
use crate::input::Input;
use crate::ipc::Messages;
use crate::jsonl::Lines;
use crate::npz;
use crate::options::{Columns, Delimiter};
use crate::parquet::Parquet;
use crate::partial::PartHeader;
use crate::router::{Header, KEY_OF_POLICIES, Sealed};

/// What is at the path of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Nothing that could be lost: no file, an empty one, or a pipe or device.
    Nothing,
    /// A router.
    Router,
    /// A part of a calibration.
    Part,
    /// A policy.
    Policy,
    /// A table with these columns.
    Table(Vec<String>),
    /// Something else.
    Other,
}

impl Existing {
    /// Whether it is a table that has all of these columns.
    #[must_use]
    pub fn has_columns(&self, names: &[&str]) -> bool {
        match self {
            Self::Table(columns) => names.iter().all(|name| columns.iter().any(|column| column == name)),
            _ => false,
        }
    }
}

/// Recognises what is at the path of an output, as far as its beginning shows. Text of any kind is a table whose columns are in
/// its first line.
#[must_use]
pub fn existing(path: impl AsRef<Path>) -> Existing {
    let path = path.as_ref();
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() && meta.len() > 0 => {}
        _ => return Existing::Nothing,
    }
    match header(path) {
        Some(text) if text.contains(&format!("\"{}\":", Header::KEY)) => return Existing::Router,
        Some(text) if text.contains(&format!("\"{}\":", PartHeader::KEY)) => return Existing::Part,
        Some(text) if text.contains(&format!("\"{KEY_OF_POLICIES}\":")) => return Existing::Policy,
        _ => {}
    }
    column_names(path).map_or(Existing::Other, Existing::Table)
}

/// The beginning of the header of a safetensors file.
fn header(path: &Path) -> Option<String> {
    /// Metadata comes first: this is enough to find its keys.
    const MAX_BYTES: u64 = 1 << 20;
    let mut file = File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let mut text = Vec::new();
    file.take(u64::from_le_bytes(length).min(MAX_BYTES)).read_to_end(&mut text).ok()?;
    text.starts_with(b"{").then(|| String::from_utf8_lossy(&text).into_owned())
}

/// The columns of a table, by its header or first row.
fn column_names(path: &Path) -> Result<Vec<String>> {
    let input = Input::open(path, None)?;
    let name = input.name.clone();
    let names = |fields: Vec<crate::layout::Field>| fields.into_iter().map(|field| field.name).collect();
    guarded(&name, || match input.format {
        Format::Csv => Records::detect(input, Delimiter::COMMA).map(|records| records.header),
        Format::Tsv => Records::detect(input, Delimiter::TAB).map(|records| records.header),
        Format::Jsonl => {
            let first = Lines::open(input).next()?.map(|(_, object)| object);
            Ok(first.into_iter().flatten().map(|(name, _)| name).collect())
        }
        Format::Parquet => Ok(names(Parquet::open(input)?.fields(&Columns::default())?)),
        Format::Arrow => Ok(names(Messages::open(input)?.1)),
        Format::Npz => npz::array_names(input),
    })
}
