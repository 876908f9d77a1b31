//! Pointsman's files: tables as CSV, TSV and JSONL (also compressed as `.gz` and `.zst`), Parquet, Arrow IPC and npz; routers; policies;
//! tasks.
//!
//! [`read`] reads a whole file, [`batches`] in bounded memory; [`TableWriter`] writes results. The columns of
//! a table are found by name:
//!
//! | | wide | nested | npz |
//! |---|---|---|---|
//! | prediction | `prob_<class>` | `probs`: list or {class: p} | `probs` n×C |
//! | votes | `votes_<class>` | `votes`: list or {class: n}; or `labels`: the annotators' labels | `votes` n×C |
//! | features | `x_<name>` | `features`: {name: value} or list | `features` n×d, `feature_names` |
//! | another model's prediction | `oracle_<name>_<class>` | `oracles`: {name: {class: p} or list} | `oracle_<name>` n×C |
//! | known truth | `true_<class>` | `truth`: list or {class: p} | `truth` n×C |
//! | others | `id`, `weight`, anything used in a filter | the same | the same, and `classes` |
//!
//! Classes are in the order of the prediction's columns or keys; everything else is matched to them by name. A list has no names: its
//! classes are those of the array `classes`, or 0 to C−1. [`Columns`] gives other names, [`Filter`] picks rows, [`Need`] lists what must be
//! there, and [`ReadOptions::annotations`] joins a long table `id,label[,annotator]`.
//!
//! # How a file is read
//! Every format describes its columns to one finder (`layout`), which decides their roles. It then appends its rows to one intermediate
//! form (`raw`): numbers of the right type, row by row. Parquet, Arrow IPC and npz become Arrow record batches first, which one reader
//! (`record_batches`) appends. One function makes a [`Table`](pointsman::Table) of the result. Probabilities are passed on as they are: the core
//! checks whether they sum to one.
//!
//! # Files are not trusted
//! Reading any file ends in a table or in an [`Error`] that names the file, the row and the column. Sizes that a file claims are checked
//! against its length before memory is allocated; Python objects are never unpickled; and a panic in a format's parser becomes an error.
//! Rust's panic hook still prints such a panic to standard error: silencing it is the choice of the program, whose hook can ask
//! [`is_guarded`] which panics these are.

mod annotations;
mod arrow;
mod atomic;
mod cell;
mod compression;
mod core_errors;
mod csv;
mod date;
mod decisions;
mod error;
mod footer;
mod format;
mod frame;
mod guard;
mod input;
mod input_column;
mod ipc;
mod json;
mod json_arrow;
mod jsonl;
mod labels;
mod layout;
mod normalize;
mod npz;
mod number;
mod options;
mod overwrite;
mod parquet;
mod partial;
mod policy;
mod quotes;
mod raw;
mod read;
mod record_batches;
mod router;
mod row_filter;
mod source;
mod suggest;
mod task;
mod write;

pub use atomic::write_atomically;
pub use decisions::{DecisionExtras, decision_columns, decision_values};
pub use error::{ContentError, Error, Result};
pub use format::Format;
pub use frame::{CopiedLabels, Frame, Ids, Joined, MatchedLabels, RepeatedIds};
pub use guard::is_guarded;
pub use input_column::{InputColumn, InputKind};
pub use normalize::Sums;
pub use options::{Columns, Delimiter, Filter, KeepLabel, Need, ReadOptions};
pub use overwrite::{Existing, existing};
pub use partial::{load_partial, parse_partial, partial_bytes, save_partial};
pub use policy::{
    RouterOrPolicy, load_policy, load_router_or_policy, parse_policy, parse_router_or_policy, policy_bytes,
    save_policy, task_sha256, task_text,
};
pub use read::{Batches, Rereadable, batches, batches_from, read, read_frame, read_frames};
pub use router::{load_router, parse_router, router_bytes, save_router};
pub use source::Progress;
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
