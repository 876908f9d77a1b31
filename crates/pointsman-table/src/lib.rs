//! Tables on disk.
mod annotations;
mod arrow;
mod arrow_value;
mod batch;
mod cell;
mod csv;
mod error;
mod format;
mod input;
mod ipc;
mod json;
mod jsonl;
mod labels;
mod layout;
mod npy;
mod npz;
mod number;
mod options;
mod parquet;
mod read;

pub use batch::Frame;
pub use error::{Error, Result};
pub use format::Format;
pub use options::{Columns, Filter, Need, ReadOptions};
pub use read::{Batches, Progress, batches, read, read_frame};
