//! The flags of a table.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use pointsman_table::{Columns, Delimiter, Filter, Format, KeepLabel};

use super::values::first_labels;
use crate::suggest::{self, suggest};

/// How to read a table.
#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
pub(crate) struct TableArgs {
    /// Keep the rows whose column has this value, or with != another; may be given several times. <, <=, > and >= compare numbers,
    /// dates and times, as in 'date>=2024-01-31'
    #[arg(long = "where", value_name = "COL=VALUE")]
    pub(crate) filters: Vec<Filter>,
    /// The table's format: csv, tsv, jsonl, parquet, arrow or npz [default: by extension or content]. Text may be compressed: .gz, .zst
    #[arg(long, value_name = "FORMAT", value_parser = suggest::<Format>(suggest::FORMATS), hide_possible_values = true)]
    pub(crate) format: Option<Format>,
    /// What separates the columns of CSV: comma, semicolon, tab, pipe or any one character [default: comma, in .tsv tab]
    #[arg(long, value_name = "CHAR", value_parser = suggest::<Delimiter>(suggest::DELIMITERS), hide_possible_values = true)]
    pub(crate) delimiter: Option<Delimiter>,
    /// Other names for columns, as in probs=p_,votes=v_,id=uid. Keys: probs, votes, labels, features, oracles, truth, id, weight,
    /// classes; item (its ids), label, annotator and date in --annotations. Features and probs are named by a prefix, or by full names
    /// with one entry each: features=words,features=age. labels=label_ reads one label per column with this prefix, or name
    /// these columns with one entry each; oracles=NAME also one column of class names. May be given several times
    #[arg(long, value_name = "KEY=NAME,…")]
    pub(crate) columns: Vec<Columns>,
    /// Divide probabilities that do not sum to one by their sum, for rounded numbers and percentages; the sums are reported
    #[arg(long)]
    pub(crate) normalize: bool,
}

/// Where the votes come from, if not from the table's own columns.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Table")]
pub(crate) struct VotesArgs {
    /// Take the votes from a long table id,label[,annotator] with one row per label, in the order of labelling or sorted by --columns
    /// date=NAME. Rows are joined by id; ids that only one table has are reported. diagnose tests annotators who are named
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) annotations: Option<PathBuf>,
    /// Refuse annotations unless every id is in both tables, and in the table only once
    #[arg(long, requires = "annotations")]
    pub(crate) strict: bool,
    /// Keep only the first K labels of every row, in the order of the file: for labels that were collected until
    /// annotators agreed
    #[arg(long, value_name = "K", value_parser = first_labels)]
    pub(crate) first_labels: Option<NonZeroU32>,
    /// Leave out rows with fewer than K labels, counted after --first-labels, --without and the like
    #[arg(long, value_name = "K", value_parser = first_labels, requires = "annotations")]
    pub(crate) min_labels: Option<NonZeroU32>,
    /// Leave out every label of this annotator; may be given several times. Rows that nobody else labelled are left out too
    #[arg(long, value_name = "NAME", requires = "annotations")]
    pub(crate) without: Vec<String>,
    /// Leave out annotations with this label, such as unsure, or '' for those without a label; may be given several times
    #[arg(long = "ignore-label", value_name = "LABEL", requires = "annotations")]
    pub(crate) ignored_labels: Vec<String>,
    /// If an annotator labelled an item twice, differently, count the latest or the first label: by --columns date=NAME if given,
    /// otherwise in the order of the file [default: refuse such annotations]
    #[arg(long, value_name = "latest|first", requires = "annotations",
          value_parser = suggest::<KeepLabel>(suggest::KEPT_LABELS), hide_possible_values = true)]
    pub(crate) keep_label: Option<KeepLabel>,
}
