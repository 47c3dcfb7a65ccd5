//! Winners as one file: a head with version, length and digest of the rest, a line with the number of records, the records.
//!
//! Exports of before this form are records and nothing else: they are read, but one that was cut between two of them is not
//! found out.

use std::borrow::Borrow;
use std::cmp::Ordering;

use crate::record::{RecordError, Winner, head};
use crate::sha256;
use crate::store::StoreError;

const MAGIC: &str = "warpwright-export";
const VERSION: u32 = 1;

/// The file.
pub fn to_bytes<W: Borrow<Winner>>(winners: &[W]) -> Vec<u8> {
    let mut body = format!("records {}\n", winners.len()).into_bytes();
    for winner in winners {
        body.append(&mut winner.borrow().to_bytes());
    }
    let head = format!("{MAGIC} {VERSION} {} {}\n", body.len(), sha256(&body));
    let mut file = head.into_bytes();
    file.append(&mut body);
    file
}

/// Its winners, all of them or none.
///
/// # Errors
/// It is cut short, damaged, or of a later version.
pub fn winners(bytes: &[u8]) -> Result<Vec<Winner>, StoreError> {
    if !bytes.starts_with(MAGIC.as_bytes()) {
        return records(bytes);
    }
    let (version, length, digest, body) = head(MAGIC, bytes).map_err(StoreError::Head)?;
    if version > VERSION {
        return Err(StoreError::LaterExport(version));
    }
    if version < VERSION {
        return Err(StoreError::Head(RecordError::Damaged));
    }
    let why = match body.len().cmp(&length) {
        Ordering::Less => Some(RecordError::Cut),
        Ordering::Greater => Some(RecordError::Followed),
        Ordering::Equal => (sha256(body) != digest).then_some(RecordError::Damaged),
    };
    if let Some(why) = why {
        return Err(StoreError::Head(why));
    }
    let damaged = || StoreError::Head(RecordError::Damaged);
    let end = body.iter().position(|&byte| byte == b'\n');
    let (line, rest) = body.split_at(end.ok_or_else(damaged)?);
    let winners = records(&rest[1..])?;
    match line == format!("records {}", winners.len()).as_bytes() {
        true => Ok(winners),
        false => Err(damaged()),
    }
}

fn records(mut rest: &[u8]) -> Result<Vec<Winner>, StoreError> {
    let mut winners = Vec::new();
    while !rest.is_empty() {
        let number = winners.len() + 1;
        let failed = |source| StoreError::Export { number, source };
        let (winner, after) = Winner::read(rest).map_err(failed)?;
        winners.push(winner);
        rest = after;
    }
    Ok(winners)
}
