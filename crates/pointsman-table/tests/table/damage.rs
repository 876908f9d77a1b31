//! Damaged files: cut short, overwritten, or junk from the start. None may panic or allocate without bound.

use std::path::PathBuf;

use arrow_ipc::CompressionType;
use parquet::basic::Compression;
use pointsman_table::{Need, ReadOptions, read, read_frame};

use crate::support::{
    Folder, Layout, Nesting, Precision, Sample, arrow_file, arrow_stream, deflated, parquet, zip, zstd,
};

/// A small random generator, the same on every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

fn binary_files(folder: &Folder) -> Vec<PathBuf> {
    let sample = Sample::new(9);
    let entries = ["probs", "votes"].map(|name| {
        crate::support::array(
            name,
            "<f8",
            false,
            "(2, 2)",
            [1.0_f64, 0.0, 0.0, 1.0].iter().flat_map(|x| x.to_le_bytes()).collect(),
        )
    });
    let mut files = vec![
        folder.file("a.npz", sample.npz(Precision::Double)),
        folder.file("b.npz", zip(&entries)),
        folder.file("c.npz", deflated(&entries)),
    ];
    let batches = [
        sample.wide_batch(true),
        sample.nested_batch(Nesting::Map),
        sample.clone().unnamed().nested_batch(Nesting::List),
    ];
    for (i, batch) in batches.iter().enumerate() {
        let path = folder.path(&format!("{i}.parquet"));
        parquet(&path, batch, [Compression::SNAPPY, zstd(), Compression::LZ4_RAW][i]);
        files.push(path);
        let path = folder.path(&format!("{i}-stream.arrow"));
        arrow_stream(&path, batch);
        files.push(path);
    }
    for (i, codec) in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)].into_iter().enumerate() {
        let path = folder.path(&format!("{i}.arrow"));
        arrow_file(&path, &batches[0], codec);
        files.push(path);
    }
    files
}

#[test]
fn files_cut_short_are_refused() {
    let folder = Folder::new();
    for path in binary_files(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(read(&path).is_ok());
        let name = format!("cut-{}", path.file_name().unwrap().to_str().unwrap());
        let stream = name.contains("stream");
        for i in 0..40 {
            let length = 1 + i * (bytes.len() - 2) / 39;
            let cut = folder.file(&name, &bytes[..length]);
            let error = match read(&cut) {
                Err(error) => error.to_string(),
                // A stream may end without an end marker.
                Ok(_) if stream && length + 8 >= bytes.len() => continue,
                Ok(_) => panic!("{} cut to {length} of {} bytes was read", path.display(), bytes.len()),
            };
            assert!(error.starts_with(&format!("{}: ", cut.display())) && !error.contains('\n'), "{error}");
        }
    }
}

#[test]
fn overwritten_files_do_not_panic() {
    let rounds: usize = std::env::var("POINTSMAN_TEST_DAMAGE").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let folder = Folder::new();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut files = binary_files(&folder);
    let sample = Sample::new(5);
    files.push(folder.file("a.csv", sample.text(',')));
    files.push(folder.file("a.jsonl", sample.jsonl(Layout::Maps)));
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        let name = format!("overwritten-{}", path.file_name().unwrap().to_str().unwrap());
        for _ in 0..rounds {
            let mut damaged = bytes.clone();
            for _ in 0..1 + numbers.below(4) {
                let at = numbers.below(damaged.len());
                damaged[at] = match numbers.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => 0x7f,
                    _ => numbers.next() as u8,
                };
            }
            let path = folder.file(&name, &damaged);
            // Whether it can still be read depends on the byte; it must not panic.
            let whole = read(&path);
            let options = ReadOptions { need: Need::Predictions, batch_rows: 2, ..ReadOptions::default() };
            let part = read_frame(&path, &options);
            for error in [whole.err(), part.err()].into_iter().flatten() {
                assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
            }
        }
    }
}

#[test]
fn junk_is_refused() {
    let folder = Folder::new();
    let mut numbers = Numbers(42);
    let junk: Vec<u8> = (0..5000).map(|_| numbers.next() as u8).collect();
    let starts: [&[u8]; 7] =
        [b"", b"PAR1", b"ARROW1\0\0", b"PK\x03\x04", b"{", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\x10\0\0\0"];
    for extension in ["csv", "tsv", "jsonl", "parquet", "arrow", "npz", "unknown"] {
        for start in starts {
            for length in [0, 1, 3, 7, 8, 64, 5000] {
                let bytes: Vec<u8> = start.iter().chain(&junk[..length]).copied().collect();
                let path = folder.file(&format!("junk.{extension}"), bytes);
                let error = read(&path).expect_err("junk was read").to_string();
                assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
                assert!(!error.contains('\n'), "{error}");
            }
        }
    }
}
