//! A sample table in every format and layout, and a zip writer that can make false claims.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, MapBuilder, StringBuilder, UInt32Builder};
use arrow_array::types::{Float32Type, Float64Type, UInt32Type};
use arrow_array::{
    ArrayRef, DictionaryArray, FixedSizeListArray, Float32Array, Float64Array, Int16Array, LargeListArray, ListArray,
    RecordBatch, StringArray, StructArray, UInt32Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use pointsman::Table;
use tempfile::TempDir;

/// A folder for one test, removed at its end.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn names(&self) -> Vec<String> {
        fs::read_dir(self.0.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// The rows of a table, in a form that is easily converted to others.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) classes: Vec<String>,
    pub(crate) probs: Vec<Vec<f64>>,
    pub(crate) votes: Vec<Vec<u32>>,
    pub(crate) truth: Vec<Vec<f64>>,
    pub(crate) oracle: Vec<Vec<f64>>,
    pub(crate) feature_names: Vec<String>,
    pub(crate) features: Vec<Vec<f64>>,
    pub(crate) weights: Vec<f64>,
    pub(crate) ids: Vec<String>,
    pub(crate) split: Vec<i16>,
}

impl Sample {
    pub(crate) fn new(rows: usize) -> Self {
        let row = |i: usize, shift: f64| {
            let a = 0.1 + 0.7 * ((i as f64 + shift) * 0.37).fract();
            let b = (1.0 - a) / 3.0;
            vec![b, a, 1.0 - a - b]
        };
        Self {
            classes: names(&["cat", "big dog", "eel"]),
            probs: (0..rows).map(|i| row(i, 0.0)).collect(),
            votes: (0..rows as u32).map(|i| vec![i % 3, 1, i % 2]).collect(),
            truth: (0..rows).map(|i| row(i, 0.5)).collect(),
            oracle: (0..rows).map(|i| row(i, 0.25)).collect(),
            feature_names: names(&["length", "age"]),
            features: (0..rows).map(|i| vec![i as f64 * 1e-3, -1.0 / (i as f64 + 1.0)]).collect(),
            weights: (0..rows).map(|i| 0.5 + i as f64).collect(),
            ids: (0..rows).map(|i| format!("item \"{i}\", é")).collect(),
            split: (0..rows as i16).map(|i| i % 2).collect(),
        }
    }

    /// The same rows of classes without names.
    pub(crate) fn unnamed(mut self) -> Self {
        self.classes = names(&["0", "1", "2"]);
        self
    }

    /// The same rows with every number such as `f32` can hold.
    pub(crate) fn single(mut self) -> Self {
        for rows in [&mut self.probs, &mut self.truth, &mut self.oracle, &mut self.features] {
            rows.iter_mut().flatten().for_each(|x| *x = f64::from(*x as f32));
        }
        self.weights.iter_mut().for_each(|x| *x = f64::from(*x as f32));
        self
    }

    pub(crate) fn rows(&self) -> usize {
        self.probs.len()
    }

    /// What reading any of the files must give.
    pub(crate) fn table(&self) -> Table {
        Table::new(self.classes.clone(), self.probs.concat())
            .unwrap()
            .with_votes(self.votes.concat())
            .unwrap()
            .with_truth(self.truth.concat())
            .unwrap()
            .with_features(self.feature_names.clone(), self.features.concat())
            .unwrap()
            .with_weights(self.weights.clone())
            .unwrap()
            .with_oracle("gpt_4", self.oracle.concat())
            .unwrap()
    }

    pub(crate) fn text(&self, delimiter: char) -> String {
        let mut out = String::from("split");
        let classes = &self.classes;
        // Votes are in another order than predictions: they are matched by name.
        classes.iter().rev().for_each(|c| write!(out, "{delimiter}votes_{c}").unwrap());
        classes.iter().for_each(|c| write!(out, "{delimiter}prob_{c}").unwrap());
        classes.iter().for_each(|c| write!(out, "{delimiter}true_{c}").unwrap());
        classes.iter().for_each(|c| write!(out, "{delimiter}oracle_gpt_4_{c}").unwrap());
        self.feature_names.iter().for_each(|f| write!(out, "{delimiter}x_{f}").unwrap());
        write!(out, "{delimiter}weight{delimiter}id\r\n").unwrap();
        for i in 0..self.rows() {
            write!(out, "{}", self.split[i]).unwrap();
            self.votes[i].iter().rev().for_each(|n| write!(out, "{delimiter}{n}").unwrap());
            for row in [&self.probs[i], &self.truth[i], &self.oracle[i], &self.features[i]] {
                row.iter().for_each(|x| write!(out, "{delimiter}{x}").unwrap());
            }
            let id = self.ids[i].replace('"', "\"\"");
            write!(out, "{delimiter}{}{delimiter}\"{id}\"\r\n", self.weights[i]).unwrap();
        }
        out
    }

    pub(crate) fn jsonl(&self, layout: Layout) -> String {
        let mut out = String::new();
        for i in 0..self.rows() {
            let (p, v, t, o) = (&self.probs[i], &self.votes[i], &self.truth[i], &self.oracle[i]);
            let (classes, features) = (&self.classes, &self.features[i]);
            let id = serde_json::to_string(&self.ids[i]).unwrap();
            let (weight, split) = (self.weights[i], self.split[i]);
            // From the second row on, keys are in another order.
            let turned = i > 0;
            let line = match layout {
                Layout::Wide => {
                    let mut fields = Vec::new();
                    for (c, class) in classes.iter().enumerate() {
                        fields.push(format!("\"prob_{class}\":{}", p[c]));
                        fields.push(format!("\"votes_{class}\":{}", v[c]));
                        fields.push(format!("\"true_{class}\":{}", t[c]));
                        fields.push(format!("\"oracle_gpt_4_{class}\":{}", o[c]));
                    }
                    let named = self.feature_names.iter().zip(features);
                    fields.extend(named.map(|(name, x)| format!("\"x_{name}\":{x}")));
                    if turned {
                        fields.reverse();
                    }
                    fields.join(",")
                }
                Layout::Lists => format!(
                    "\"probs\":{p:?},\"votes\":{v:?},\"truth\":{t:?},\"oracles\":{{\"gpt_4\":{o:?}}},\"features\":{}",
                    map(&self.feature_names, features, turned)
                ),
                Layout::Maps => format!(
                    "\"probs\":{},\"votes\":{},\"truth\":{},\"oracles\":{{\"gpt_4\":{}}},\"features\":{}",
                    map(classes, p, turned),
                    map(classes, v, !turned),
                    map(classes, t, turned),
                    map(classes, o, turned),
                    map(&self.feature_names, features, turned)
                ),
                Layout::Labels => {
                    let labels = v.iter().enumerate().flat_map(|(c, n)| vec![classes[c].clone(); *n as usize]);
                    format!(
                        "\"probs\":{},\"labels\":{:?},\"truth\":{},\"oracles\":{{\"gpt_4\":{}}},\"features\":{}",
                        map(classes, p, turned),
                        labels.collect::<Vec<_>>(),
                        map(classes, t, turned),
                        map(classes, o, turned),
                        map(&self.feature_names, features, turned)
                    )
                }
            };
            writeln!(out, "{{{line},\"weight\":{weight},\"split\":{split},\"id\":{id}}}").unwrap();
        }
        out
    }

    pub(crate) fn wide_batch(&self, single: bool) -> RecordBatch {
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        let real = |values: Vec<f64>| -> ArrayRef {
            if single {
                Arc::new(Float32Array::from_iter_values(values.into_iter().map(|x| x as f32)))
            } else {
                Arc::new(Float64Array::from(values))
            }
        };
        for (c, class) in self.classes.iter().enumerate().rev() {
            let votes = UInt32Array::from_iter_values(self.votes.iter().map(|row| row[c]));
            columns.push((format!("votes_{class}"), Arc::new(votes)));
        }
        for (c, class) in self.classes.iter().enumerate() {
            columns.push((format!("prob_{class}"), real(self.probs.iter().map(|row| row[c]).collect())));
            columns.push((format!("true_{class}"), real(self.truth.iter().map(|row| row[c]).collect())));
            columns.push((format!("oracle_gpt_4_{class}"), real(self.oracle.iter().map(|row| row[c]).collect())));
        }
        for (f, name) in self.feature_names.iter().enumerate() {
            columns.push((format!("x_{name}"), real(self.features.iter().map(|row| row[f]).collect())));
        }
        columns.push(("weight".to_owned(), real(self.weights.clone())));
        columns.push(("id".to_owned(), Arc::new(StringArray::from_iter_values(&self.ids))));
        columns.push(("split".to_owned(), Arc::new(Int16Array::from(self.split.clone()))));
        RecordBatch::try_from_iter(columns).unwrap()
    }

    pub(crate) fn nested_batch(&self, nesting: Nesting) -> RecordBatch {
        let features: ArrayRef = structs(&self.feature_names, &self.features);
        let (probs, votes, truth, oracle): (ArrayRef, ArrayRef, ArrayRef, ArrayRef) = match nesting {
            Nesting::List => {
                let votes = self.votes.iter().map(|row| Some(row.iter().map(|n| Some(*n)).collect::<Vec<_>>()));
                (
                    list(&self.probs),
                    Arc::new(ListArray::from_iter_primitive::<UInt32Type, _, _>(votes)),
                    list(&self.truth),
                    list(&self.oracle),
                )
            }
            Nesting::LargeAndFixed => {
                let votes = self.votes.iter().map(|row| Some(row.iter().map(|n| Some(*n)).collect::<Vec<_>>()));
                let fixed = |rows: &[Vec<f64>]| -> ArrayRef {
                    let rows = rows.iter().map(|row| Some(row.iter().map(|x| Some(*x)).collect::<Vec<_>>()));
                    Arc::new(FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(rows, 3))
                };
                let single = self.truth.iter().map(|row| Some(row.iter().map(|x| Some(*x as f32)).collect::<Vec<_>>()));
                (
                    fixed(&self.probs),
                    Arc::new(LargeListArray::from_iter_primitive::<UInt32Type, _, _>(votes)),
                    Arc::new(LargeListArray::from_iter_primitive::<Float32Type, _, _>(single)),
                    fixed(&self.oracle),
                )
            }
            Nesting::Struct => {
                let votes: Vec<Vec<f64>> =
                    self.votes.iter().map(|row| row.iter().map(|n| f64::from(*n)).collect()).collect();
                (
                    structs(&self.classes, &self.probs),
                    structs(&self.classes, &votes),
                    structs(&self.classes, &self.truth),
                    structs(&self.classes, &self.oracle),
                )
            }
            Nesting::Map => {
                let mut votes = MapBuilder::new(None, StringBuilder::new(), UInt32Builder::new());
                for row in &self.votes {
                    for (class, n) in self.classes.iter().zip(row) {
                        votes.keys().append_value(class);
                        votes.values().append_value(*n);
                    }
                    votes.append(true).unwrap();
                }
                (
                    maps(&self.classes, &self.probs),
                    Arc::new(votes.finish()),
                    maps(&self.classes, &self.truth),
                    structs(&self.classes, &self.oracle),
                )
            }
        };
        let oracles: ArrayRef = Arc::new(StructArray::from(vec![(
            Arc::new(Field::new("gpt_4", oracle.data_type().clone(), true)),
            oracle,
        )]));
        // A categorical column, as data frames write them.
        let ids: DictionaryArray<arrow_array::types::Int32Type> = self.ids.iter().map(String::as_str).collect();
        RecordBatch::try_from_iter(vec![
            ("probs", probs),
            ("votes", votes),
            ("truth", truth),
            ("oracles", oracles),
            ("features", features),
            ("weight", Arc::new(Float64Array::from(self.weights.clone())) as ArrayRef),
            ("id", Arc::new(ids)),
            ("split", Arc::new(Int16Array::from(self.split.clone()))),
        ])
        .unwrap()
    }

    pub(crate) fn npz(&self, precision: Precision) -> Vec<u8> {
        let (rows, width) = (self.rows(), self.classes.len());
        let real = |name: &str, shape: &str, values: Vec<f64>| match precision {
            Precision::Single => {
                array(name, "<f4", false, shape, values.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect())
            }
            Precision::Double => {
                array(name, "<f8", false, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect())
            }
            Precision::BigEndian => {
                array(name, ">f8", false, shape, values.iter().flat_map(|x| x.to_be_bytes()).collect())
            }
        };
        let matrix = format!("({rows}, {width})");
        let vector = format!("({rows},)");
        let votes = self.votes.concat();
        zip(&[
            real("probs", &matrix, self.probs.concat()),
            array("votes", "<u4", false, &matrix, votes.iter().flat_map(|n| n.to_le_bytes()).collect()),
            real("truth", &matrix, self.truth.concat()),
            real("oracle_gpt_4", &matrix, self.oracle.concat()),
            real("features", &format!("({rows}, {})", self.feature_names.len()), self.features.concat()),
            unicode("feature_names", &self.feature_names),
            unicode("classes", &self.classes),
            real("weight", &vector, self.weights.clone()),
            unicode("id", &self.ids),
            array("split", "<i2", false, &vector, self.split.iter().flat_map(|i| i.to_le_bytes()).collect()),
        ])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Wide,
    Lists,
    Maps,
    Labels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    List,
    LargeAndFixed,
    Struct,
    Map,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    Single,
    Double,
    BigEndian,
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&n| n.to_owned()).collect()
}

fn map<T: std::fmt::Display>(keys: &[String], values: &[T], turned: bool) -> String {
    let mut entries: Vec<String> = keys.iter().zip(values).map(|(k, v)| format!("\"{k}\":{v}")).collect();
    if turned {
        entries.reverse();
    }
    format!("{{{}}}", entries.join(","))
}

fn list(rows: &[Vec<f64>]) -> ArrayRef {
    let rows = rows.iter().map(|row| Some(row.iter().map(|x| Some(*x)).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(rows))
}

fn structs(keys: &[String], rows: &[Vec<f64>]) -> ArrayRef {
    let fields: Fields = keys.iter().map(|k| Field::new(k, DataType::Float64, true)).collect();
    let columns = (0..keys.len()).map(|c| Arc::new(rows.iter().map(|row| Some(row[c])).collect::<Float64Array>()) as _);
    Arc::new(StructArray::new(fields, columns.collect(), None))
}

fn maps(keys: &[String], rows: &[Vec<f64>]) -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for (i, row) in rows.iter().enumerate() {
        // From the second row on, keys are in another order.
        let turn = i % keys.len();
        for c in (0..keys.len()).map(|c| (c + turn) % keys.len()) {
            builder.keys().append_value(&keys[c]);
            builder.values().append_value(row[c]);
        }
        builder.append(true).unwrap();
    }
    Arc::new(builder.finish())
}

pub(crate) fn parquet(path: &Path, batch: &RecordBatch, compression: Compression) {
    let properties =
        WriterProperties::builder().set_compression(compression).set_max_row_group_row_count(Some(7)).build();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

pub(crate) fn zstd() -> Compression {
    Compression::ZSTD(ZstdLevel::default())
}

pub(crate) fn arrow_file(path: &Path, batch: &RecordBatch, compression: Option<CompressionType>) {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
    halves(batch).iter().for_each(|half| writer.write(half).unwrap());
    writer.finish().unwrap();
}

pub(crate) fn arrow_stream(path: &Path, batch: &RecordBatch) {
    let mut writer = StreamWriter::try_new(fs::File::create(path).unwrap(), &batch.schema()).unwrap();
    // Dictionaries may not change within a file, but may within a stream.
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

fn halves(batch: &RecordBatch) -> [RecordBatch; 2] {
    let half = batch.num_rows() / 2;
    [batch.slice(0, half), batch.slice(half, batch.num_rows() - half)]
}

/// A numpy array as the zip's entry.
pub(crate) fn array(name: &str, descr: &str, fortran: bool, shape: &str, elements: Vec<u8>) -> (String, Vec<u8>) {
    let fortran = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend(elements);
    (format!("{name}.npy"), out)
}

pub(crate) fn unicode(name: &str, texts: &[String]) -> (String, Vec<u8>) {
    let width = texts.iter().map(|t| t.chars().count()).max().unwrap_or(1);
    let mut elements = Vec::new();
    for text in texts {
        let start = elements.len();
        elements.extend(text.chars().flat_map(|c| u32::from(c).to_le_bytes()));
        elements.resize(start + 4 * width, 0);
    }
    array(name, &format!("<U{width}"), false, &format!("({},)", texts.len()), elements)
}

/// A zip of stored entries.
pub(crate) fn zip(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let stored: Vec<Entry> = entries
        .iter()
        .map(|(name, data)| Entry {
            name: name.clone(),
            method: 0,
            size: data.len(),
            crc: crc(data),
            data: data.clone(),
        })
        .collect();
    zip_entries(&stored)
}

/// A zip of deflated entries.
pub(crate) fn deflated(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let deflate = |data: &[u8]| {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, data).unwrap();
        encoder.finish().unwrap()
    };
    let entries: Vec<Entry> = entries
        .iter()
        .map(|(name, data)| Entry {
            name: name.clone(),
            method: 8,
            size: data.len(),
            crc: crc(data),
            data: deflate(data),
        })
        .collect();
    zip_entries(&entries)
}

/// An entry of a zip, whose claims may be false.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) method: u16,
    pub(crate) size: usize,
    pub(crate) crc: u32,
    pub(crate) data: Vec<u8>,
}

pub(crate) fn crc(data: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    crc.sum()
}

pub(crate) fn zip_entries(entries: &[Entry]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = out.len() as u32;
        let mut common = vec![20, 0, 0, 0];
        common.extend_from_slice(&entry.method.to_le_bytes());
        common.extend_from_slice(&[0, 0, 33, 0]);
        common.extend_from_slice(&entry.crc.to_le_bytes());
        common.extend_from_slice(&(entry.data.len() as u32).to_le_bytes());
        common.extend_from_slice(&(entry.size as u32).to_le_bytes());
        common.extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
        common.extend_from_slice(&[0, 0]);
        out.extend_from_slice(b"PK\x03\x04");
        out.extend_from_slice(&common);
        out.extend_from_slice(entry.name.as_bytes());
        out.extend_from_slice(&entry.data);
        directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        directory.extend_from_slice(&common);
        directory.extend_from_slice(&[0; 10]);
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(entry.name.as_bytes());
    }
    let start = out.len() as u32;
    out.extend_from_slice(&directory);
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    out.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    out.extend_from_slice(&start.to_le_bytes());
    out.extend_from_slice(&[0, 0]);
    out
}
