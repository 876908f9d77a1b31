//! Pointsman's files: tables as CSV, TSV, JSONL (also as `.gz` and `.zst`), Parquet, Arrow IPC and npz, routers, and tasks.
//!
//! [`read`] takes a file whole, [`batches`] in bounded memory; [`TableWriter`] writes results. The columns of
//! a table are found by name:
//!
//! | | wide | nested | npz |
//! |---|---|---|---|
//! | prediction | `prob_<class>` | `probs`: list or {class: p} | `probs` n×C |
//! | votes | `votes_<class>` | `votes`: list or {class: n}; or `labels`: the annotators' labels | `votes` n×C |
//! | features | `x_<name>` | `features`: {name: value} or list | `features` n×d, `feature_names` |
//! | another model's prediction | `oracle_<name>_<class>` | `oracles`: {name: {class: p} or list} | `oracle_<name>` n×C |
//! | known truth | `true_<class>` | `truth`: list or {class: p} | `truth` n×C |
//! | others | `id`, `weight`, anything a filter names | the same | the same, and `classes` |
//!
//! Classes are in the order of the prediction's columns or keys; everything else is matched to them by name.
//! A list has no names: its classes are those of the array `classes`, or 0 to C−1. [`Columns`] gives other
//! names, [`Filter`] picks rows, [`Need`] says what must be there, and [`ReadOptions::annotations`] joins
//! a long table `id,label[,annotator]`.
//!
//! # One way through
//! Every format describes its columns to one finder (which columns mean what), appends its rows to one
//! intermediate batch (numbers of the right type, row by row), and one function makes a
//! [`Table`](pointsman::Table) of that. Probabilities are passed on as they are: whether they sum to one, and
//! what is done about it, is the core's business.
//!
//! # Files are not trusted
//! Whatever a file says, reading it ends in a table or in an [`Error`] that names the file, the row and the
//! column. Sizes that a file claims are checked against its length before memory is allocated; Python objects
//! are never unpickled; and a panic in a format's parser becomes an error at the boundary. Rust's panic hook
//! still prints such a panic to standard error: silencing it is the program's choice, not a library's, and
//! [`is_guarded`] tells its hook which panics those are.

mod annotations;
mod arrow;
mod arrow_scalar;
mod arrow_text;
mod arrow_value;
mod atomic;
mod batch;
mod cell;
mod compression;
mod csv;
mod date;
mod decisions;
mod dictionary;
mod error;
mod footer;
mod format;
mod input;
mod input_column;
mod ipc;
mod json;
mod json_arrow;
mod jsonl;
mod labels;
mod layout;
mod normalize;
mod npy;
mod npz;
mod npz_write;
mod number;
mod options;
mod overwrite;
mod parquet;
mod partial;
mod read;
mod router;
mod suggest;
mod task;
mod write;

pub use annotations::{Ids, Joined};
pub use atomic::write_atomically;
pub use batch::{Frame, RepeatedIds};
pub use decisions::{DecisionExtras, decision_columns, decision_values};
pub use error::{ContentError, Error, Result};
pub use format::Format;
pub use input_column::{InputColumn, InputKind};
pub use normalize::Sums;
pub use options::{Columns, Delimiter, Filter, Need, ReadOptions};
pub use overwrite::{Existing, existing};
pub use partial::{load_partial, parse_partial, partial_bytes, save_partial};
pub use read::{Batches, Progress, Rereadable, batches, is_guarded, read, read_frame, read_frames};
pub use router::{load_router, parse_router, router_bytes, save_router};
pub use suggest::did_you_mean;
pub use task::{parse_task, read_task};
pub use write::{Column, ColumnKind, TableWriter, record_batch};

// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The examples of the README run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
