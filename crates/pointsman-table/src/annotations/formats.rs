//! Annotations of each format, row by row.

use arrow_array::RecordBatch;

use super::columns::{AnnotationColumns, Places};
use super::counter::{Annotation, Counter};
use crate::arrow::cell;
use crate::cell::Cell;
use crate::csv::{Records, text_cell};
use crate::date::is_time;
use crate::error::{Error, Result, RowAt};
use crate::format::Format;
use crate::input::Input;
use crate::ipc::Messages;
use crate::json::entry;
use crate::jsonl::Lines;
use crate::layout::Field;
use crate::npz;
use crate::options::{Columns, Delimiter};
use crate::parquet::Parquet;

impl Counter<'_> {
    /// Counts all annotations of a file.
    pub(super) fn read(&mut self, input: Input, delimiter: Option<Delimiter>) -> Result<()> {
        /// Rows of a batch of Parquet.
        const BATCH_ROWS: usize = 65_536;
        let name = input.name.clone();
        match input.format {
            // Two files of one export mostly have the same delimiter, unless the name or the header of one shows another.
            Format::Csv => self.read_csv(input, delimiter.unwrap_or(Delimiter::COMMA)),
            Format::Tsv => self.read_csv(input, Delimiter::TAB),
            Format::Jsonl => self.read_jsonl(input),
            Format::Parquet => {
                let parquet = Parquet::open(input)?;
                let fields = parquet.fields(&Columns::default())?;
                let all: Vec<usize> = (0..fields.len()).collect();
                self.read_batches(&name, fields, parquet.batches(&all, BATCH_ROWS)?)
            }
            Format::Arrow => {
                let (messages, fields) = Messages::open(input)?;
                self.read_batches(&name, fields, messages)
            }
            Format::Npz => {
                // A zip of another name, such as an Excel workbook, is refused as what it is.
                if !name.ends_with(".npz") {
                    npz::array_names(input)?;
                }
                Err(Error::file(&name, "annotations cannot be read from npz: use csv, jsonl, parquet or arrow"))
            }
        }
    }

    fn read_csv(&mut self, input: Input, usual: Delimiter) -> Result<()> {
        let mut records = Records::detect(input, usual)?;
        let places = self.find_places(&records.name, &records.header)?;
        let header = records.header.clone();
        while let Some((at, record)) = records.next()? {
            self.add_row(at, &places, &header, |field| text_cell(at, record, field, &header[field]))?;
        }
        Ok(())
    }

    fn read_batches(
        &mut self,
        file: &str,
        fields: Vec<Field>,
        batches: impl Iterator<Item = Result<RecordBatch>>,
    ) -> Result<()> {
        let names: Vec<String> = fields.into_iter().map(|field| field.name).collect();
        let places = self.find_places(file, &names)?;
        let mut at = RowAt { file, row: 0, line: None };
        for batch in batches {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                at.row += 1;
                let value = |field: usize| cell(batch.column(field), row).map_err(|why| at.value(&names[field], why));
                self.add_row(at, &places, &names, value)?;
            }
        }
        Ok(())
    }

    /// Finds the columns among those of a file.
    fn find_places(&mut self, file: &str, names: &[String]) -> Result<Places> {
        self.found = AnnotationColumns::find(self.columns, names).map_err(|reason| Error::file(file, reason))?;
        self.found.places(file, names)
    }

    fn add_row<'c>(
        &mut self,
        at: RowAt<'_>,
        places: &Places,
        names: &[String],
        cell: impl Fn(usize) -> Result<Cell<'c>>,
    ) -> Result<()> {
        if at.row == 1 {
            let is_time = |&&field: &&usize| cell(field).is_ok_and(|value| is_time(&value));
            self.found.unused_date = places.unused.iter().find(is_time).map(|&field| names[field].clone());
        }
        let annotation = Annotation {
            annotator: places.annotator.map(&cell).transpose()?,
            date: places.date.map(&cell).transpose()?,
            id: cell(places.id)?,
            label: cell(places.label)?,
        };
        self.add(at, &annotation)
    }

    fn read_jsonl(&mut self, input: Input) -> Result<()> {
        let mut lines = Lines::open(input);
        let mut is_first = true;
        while let Some((at, object)) = lines.next()? {
            if is_first {
                let names: Vec<String> = object.iter().map(|(name, _)| name.clone()).collect();
                self.found = AnnotationColumns::find(self.columns, &names).map_err(|reason| at.row(reason))?;
                if let Ok(places) = self.found.places("", &names) {
                    let is_time = |place: &&usize| object[**place].1.cell().is_some_and(|value| is_time(&value));
                    self.found.unused_date = places.unused.iter().find(is_time).map(|&place| names[place].clone());
                }
                is_first = false;
            }
            let AnnotationColumns { id, label, annotator, date, .. } = &self.found;
            if let Some(twice) = self.found.given_twice(object.iter().map(|(name, _)| name)) {
                return Err(at.value(twice, "is given twice: keep one of them"));
            }
            if annotator.is_none() && entry(&object, &self.columns.annotator, 0).is_some() {
                let reason = "is not in the first row: name all annotators, or none";
                return Err(at.value(&self.columns.annotator, reason));
            }
            let cell = |name: &String| match entry(&object, name, 0) {
                None => Err(at.value(name, "is missing: every annotation needs it")),
                Some(value) => {
                    value.cell().ok_or_else(|| at.value(name, format!("one value is needed, not {}", value.brief())))
                }
            };
            let annotation = Annotation {
                annotator: annotator.as_ref().map(cell).transpose()?,
                date: date.as_ref().map(cell).transpose()?,
                id: cell(id)?,
                label: cell(label)?,
            };
            self.add(at, &annotation)?;
        }
        Ok(())
    }
}
