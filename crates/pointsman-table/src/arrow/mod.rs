//! Values of Arrow arrays: their shapes, single values, numbers and text.

mod dictionary;
mod scalar;
mod shape;
mod text;
mod value;

pub(crate) use self::dictionary::{plain, plain_type};
pub(crate) use self::shape::{fields, flattened, list_values, map_keys, shape_needs_a_row, span};
pub(crate) use self::text::{write_json, write_text};
pub(crate) use self::value::{ColumnSlice, FromNumber, cell, is_null};
