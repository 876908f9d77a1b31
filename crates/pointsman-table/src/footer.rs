//! Checks of a Parquet file's footer before the library parses it.
//!
//! The library follows the footer's schema to any depth and reserves memory for as many row groups and children as it claims. A stack
//! overflow or a failed allocation ends the whole process and cannot be caught. So the footer's claims are checked here first: every list
//! fits into the remaining bytes, and nesting is not deeper than tables need. (Thrift's compact protocol, with its few wire types.)

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::error::Parsed;

/// The deepest nesting of values and schemas that is read.
const MAX_DEPTH: usize = 64;

/// Checks the footer of a file of `bytes` bytes.
pub(crate) fn check(file: &mut File, bytes: u64) -> Parsed<()> {
    let footer = read(file, bytes).map_err(|e| e.to_string())?.ok_or("it ends too early")?;
    let mut scan = Scan(&footer);
    let mut id = 0;
    while let Some(kind) = scan.field(&mut id)? {
        match (id, kind) {
            (2, Kind::List) => scan.schema()?,
            _ => scan.skip(kind, MAX_DEPTH)?,
        }
    }
    Ok(())
}

/// The footer, if the file has one.
fn read(file: &mut File, bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(end) = bytes.checked_sub(8) else { return Ok(None) };
    let mut tail = [0; 8];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut tail)?;
    let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    let Some(start) = end.checked_sub(length).filter(|_| tail.ends_with(b"PAR1")) else { return Ok(None) };
    file.seek(SeekFrom::Start(start))?;
    let mut footer = Vec::new();
    file.take(length).read_to_end(&mut footer)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(Some(footer))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Byte,
    Varint,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl Kind {
    fn from_code(code: u8) -> Parsed<Self> {
        Ok(match code {
            1 | 2 => Self::Bool,
            3 => Self::Byte,
            4..=6 => Self::Varint,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            _ => return Err(format!("its footer has a value of unknown type {code}")),
        })
    }
}

struct Scan<'a>(&'a [u8]);

impl Scan<'_> {
    fn advance(&mut self, bytes: u64) -> Parsed<()> {
        let rest = usize::try_from(bytes).ok().and_then(|n| self.0.get(n..));
        self.0 = rest.ok_or("its footer is cut short")?;
        Ok(())
    }

    fn byte(&mut self) -> Parsed<u8> {
        let (first, rest) = self.0.split_first().ok_or("its footer is cut short")?;
        self.0 = rest;
        Ok(*first)
    }

    fn varint(&mut self) -> Parsed<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("its footer has a number that does not end".to_owned())
    }

    fn signed(&mut self) -> Parsed<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The next field of a structure, if it has one more; `id` is the last one's.
    fn field(&mut self, id: &mut i64) -> Parsed<Option<Kind>> {
        let header = self.byte()?;
        if header == 0 {
            return Ok(None);
        }
        *id = match header >> 4 {
            0 => self.signed()?,
            delta => id.saturating_add(i64::from(delta)),
        };
        Kind::from_code(header & 0x0f).map(Some)
    }

    /// The number and the type of a list's elements, which need a byte each at least.
    fn list(&mut self) -> Parsed<(u64, Kind)> {
        let header = self.byte()?;
        let size = match header >> 4 {
            15 => self.varint()?,
            size => u64::from(size),
        };
        // Some writers give empty lists no type.
        let kind = if size == 0 { Kind::Byte } else { Kind::from_code(header & 0x0f)? };
        if size > self.0.len() as u64 {
            return Err(format!("its footer claims a list of {size}, but has {} bytes left", self.0.len()));
        }
        Ok((size, kind))
    }

    fn skip(&mut self, kind: Kind, depth: usize) -> Parsed<()> {
        let depth = depth.checked_sub(1).ok_or("its footer is nested too deep")?;
        match kind {
            // As a field, a truth value is in the type.
            Kind::Bool => Ok(()),
            Kind::Byte => self.advance(1),
            Kind::Varint => self.varint().map(drop),
            Kind::Double => self.advance(8),
            Kind::Binary => {
                let length = self.varint()?;
                self.advance(length)
            }
            Kind::List => {
                let (size, kind) = self.list()?;
                (0..size).try_for_each(|_| self.element(kind, depth))
            }
            Kind::Map => {
                let size = self.varint()?;
                if size == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Kind::from_code(kinds >> 4)?, Kind::from_code(kinds & 0x0f)?);
                (0..size).try_for_each(|_| self.element(key, depth).and_then(|()| self.element(value, depth)))
            }
            Kind::Struct => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth)?;
                }
                Ok(())
            }
        }
    }

    fn element(&mut self, kind: Kind, depth: usize) -> Parsed<()> {
        if kind == Kind::Bool { self.advance(1) } else { self.skip(kind, depth) }
    }

    /// The schema: a tree, listed with each node before its children.
    fn schema(&mut self) -> Parsed<()> {
        let (size, kind) = self.list()?;
        // How many children are still to come on each level.
        let mut open: Vec<u64> = Vec::new();
        for _ in 0..size {
            if kind != Kind::Struct {
                return Err("its schema is not one".to_owned());
            }
            let (mut id, mut children) = (0, 0);
            while let Some(kind) = self.field(&mut id)? {
                match (id, kind) {
                    (5, Kind::Varint) => children = self.signed()?,
                    _ => self.skip(kind, MAX_DEPTH)?,
                }
            }
            let children = u64::try_from(children).ok().filter(|&n| n <= size);
            let children = children.ok_or("its schema claims more columns than it has")?;
            if let Some(left) = open.last_mut() {
                *left = left.saturating_sub(1);
            }
            open.push(children);
            while open.last() == Some(&0) {
                open.pop();
            }
            if open.len() > MAX_DEPTH {
                return Err("its schema is nested too deep".to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn checked(footer: &[u8]) -> Parsed<()> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"PAR1").unwrap();
        file.write_all(footer).unwrap();
        file.write_all(&(footer.len() as u32).to_le_bytes()).unwrap();
        file.write_all(b"PAR1").unwrap();
        check(&mut file, footer.len() as u64 + 12)
    }

    #[test]
    fn schemas_nested_too_deep_are_refused() {
        // Field 2, a list of 100,000 structures; each has field 5 = 1 child, zigzag.
        let mut footer = vec![0x29, 0xfc, 0xa0, 0x8d, 0x06];
        footer.extend([0x55, 2, 0].repeat(100_000));
        footer.push(0);
        assert!(checked(&footer).unwrap_err().contains("nested too deep"));
    }

    #[test]
    fn lists_longer_than_the_footer_are_refused() {
        // Field 4, a list of a thousand million row groups.
        let footer = [0x49, 0xfc, 0x80, 0x94, 0xeb, 0xdc, 0x03, 0];
        assert!(checked(&footer).unwrap_err().contains("a list of 1000000000"), "{:?}", checked(&footer));
        // Field 2, one structure that claims as many children.
        let footer = [0x29, 0x1c, 0x55, 0x80, 0xa8, 0xd6, 0xb9, 0x07, 0, 0];
        assert!(checked(&footer).unwrap_err().contains("more columns than it has"));
    }

    #[test]
    fn structures_nested_too_deep_are_refused() {
        // Field 1, a structure whose field 1 is a structure, and so on.
        let footer = [0x1c].repeat(10_000);
        assert!(checked(&footer).unwrap_err().contains("nested too deep"));
        assert!(checked(&[]).unwrap_err().contains("cut short"));
        assert!(checked(&[0]).is_ok());
    }
}
