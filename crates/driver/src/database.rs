//! The database of measurements (SQLite): what `tune` measured, so that a second run is instant
//! and `opt` can use measured knowledge.
//!
//! A measurement is keyed by what it depends on: the kernel's content, the launch, the GPU, the
//! driver and the toolkit. The file is the caller's choice; `:memory:` works for tests.

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;

use crate::candidate::Measured;
use warpwright_pass::Recipe;

/// Version of the tables and of the export format. The first one held recipes as lists of decisions.
const SCHEMA: u32 = 2;

/// Something is wrong with the database or an imported document.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite refused.
    #[error("the database of measurements: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A stored or imported document cannot be read.
    #[error("measurements: {0}")]
    Json(#[from] serde_json::Error),
    /// Written by another version.
    #[error("measurements have schema {found}, this version reads {SCHEMA}")]
    Schema {
        /// What the file says.
        found: u32,
    },
}

/// What a measurement depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Content hash of the kernel, see [`kernel_hash`].
    pub kernel: String,
    /// Content hash of the launch (sizes and initial data change times).
    pub launch: String,
    /// Name of the GPU as its driver reports it.
    pub gpu: String,
    /// Version of the driver.
    pub driver: String,
    /// Version of ptxas.
    pub toolkit: String,
}

/// One stored measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What it depends on.
    pub key: Key,
    /// The kernel's name, for people.
    pub name: String,
    /// The recipe.
    pub recipe: Recipe,
    /// The result; `None` when the candidate was wrong or failed.
    pub measured: Option<Measured>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Date of the measurement (ISO 8601).
    pub date: String,
}

/// A recipe as a column holds it: its text, or what the first version wrote.
fn stored_recipe(text: &str) -> Result<Recipe, serde_json::Error> {
    match text.starts_with('[') {
        true => serde_json::from_str(text),
        false => serde_json::from_value(text.into()),
    }
}

/// Measurements that travel: what [`Database::import`] takes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Export {
    schema: u32,
    measurements: Vec<Entry>,
}

impl Export {
    /// A document of these measurements.
    pub fn new(measurements: Vec<Entry>) -> Self {
        Export {
            schema: SCHEMA,
            measurements,
        }
    }
}

/// The database.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
}

/// Hash of a kernel's content: the module's PTX and the kernel's name.
pub fn kernel_hash(ptx: &str, kernel: &str) -> String {
    hash(&[ptx.as_bytes(), kernel.as_bytes()])
}

/// SHA-256 over length-prefixed parts, in hexadecimal.
pub fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher
        .finalize()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

impl Database {
    /// Opens or creates the database file.
    ///
    /// # Errors
    /// [`DatabaseError::Sqlite`]: it cannot be opened, or is no database of ours.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Self::prepare(Connection::open(path)?)
    }

    /// A database that lives as long as the value.
    ///
    /// # Errors
    /// [`DatabaseError::Sqlite`].
    pub fn in_memory() -> Result<Self, DatabaseError> {
        Self::prepare(Connection::open_in_memory()?)
    }

    fn prepare(connection: Connection) -> Result<Self, DatabaseError> {
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        let found: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if found > SCHEMA {
            return Err(DatabaseError::Schema { found });
        }
        connection.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS measurement (
                kernel TEXT NOT NULL, launch TEXT NOT NULL, gpu TEXT NOT NULL,
                driver TEXT NOT NULL, toolkit TEXT NOT NULL, recipe TEXT NOT NULL,
                name TEXT NOT NULL, measured TEXT, failure TEXT, date TEXT NOT NULL,
                PRIMARY KEY (kernel, launch, gpu, driver, toolkit, recipe));
             PRAGMA user_version = {SCHEMA};"
        ))?;
        let database = Database { connection };
        if found == 1 {
            database.rewrite_recipes()?;
        }
        Ok(database)
    }

    /// Gives every stored recipe its text.
    fn rewrite_recipes(&self) -> Result<(), DatabaseError> {
        let all = self.all()?;
        self.connection.execute("DELETE FROM measurement", [])?;
        all.iter().try_for_each(|entry| self.put(entry))
    }

    /// Stores a measurement, replacing an older one of the same key and recipe.
    ///
    /// # Errors
    /// [`DatabaseError::Sqlite`]: the file cannot be written.
    pub fn put(&self, entry: &Entry) -> Result<(), DatabaseError> {
        let measured = entry
            .measured
            .as_ref()
            .map(serde_json::to_string)
            .transpose()?;
        self.connection.execute(
            "INSERT OR REPLACE INTO measurement VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)",
            params![
                entry.key.kernel,
                entry.key.launch,
                entry.key.gpu,
                entry.key.driver,
                entry.key.toolkit,
                entry.recipe.to_string(),
                entry.name,
                measured,
                entry.failure,
                entry.date,
            ],
        )?;
        Ok(())
    }

    /// The measurement of one recipe.
    ///
    /// # Errors
    /// [`DatabaseError::Sqlite`], or [`DatabaseError::Json`] where a stored measurement cannot be read.
    pub fn get(&self, key: &Key, recipe: &Recipe) -> Result<Option<Entry>, DatabaseError> {
        let row = self
            .connection
            .query_row(
                "SELECT name, measured, failure, date FROM measurement
                 WHERE kernel=?1 AND launch=?2 AND gpu=?3 AND driver=?4 AND toolkit=?5
                   AND recipe=?6",
                params![
                    key.kernel,
                    key.launch,
                    key.gpu,
                    key.driver,
                    key.toolkit,
                    recipe.to_string()
                ],
                |row| {
                    Ok((
                        row.get::<_, String>(0)?,
                        row.get::<_, Option<String>>(1)?,
                        row.get::<_, Option<String>>(2)?,
                        row.get::<_, String>(3)?,
                    ))
                },
            )
            .optional()?;
        let Some((name, measured, failure, date)) = row else {
            return Ok(None);
        };
        let measured = measured.as_deref().map(serde_json::from_str).transpose()?;
        let (key, recipe) = (key.clone(), recipe.clone());
        Ok(Some(Entry {
            key,
            name,
            recipe,
            measured,
            failure,
            date,
        }))
    }

    /// All measurements of a kernel on GPUs whose name contains `gpu`, newest first: what `opt`
    /// may use. The driver's version is left open, since it is unknown where no GPU is.
    ///
    /// # Errors
    /// As of [`Database::all`].
    pub fn of_kernel(
        &self,
        kernel: &str,
        gpu: &str,
        toolkit: &str,
    ) -> Result<Vec<Entry>, DatabaseError> {
        let all = self.all()?;
        let mut found: Vec<Entry> = all
            .into_iter()
            .filter(|e| e.key.kernel == kernel && e.key.toolkit == toolkit)
            .filter(|e| e.key.gpu.to_lowercase().contains(&gpu.to_lowercase()))
            .collect();
        found.sort_by(|a, b| b.date.cmp(&a.date));
        Ok(found)
    }

    /// Everything, in a fixed order.
    ///
    /// # Errors
    /// [`DatabaseError::Sqlite`], or [`DatabaseError::Json`] where a stored measurement cannot be read.
    pub fn all(&self) -> Result<Vec<Entry>, DatabaseError> {
        let mut statement = self.connection.prepare(
            "SELECT kernel, launch, gpu, driver, toolkit, recipe, name, measured, failure, date
             FROM measurement ORDER BY kernel, launch, gpu, driver, toolkit, recipe",
        )?;
        let rows = statement.query_map([], |row| {
            Ok((
                Key {
                    kernel: row.get(0)?,
                    launch: row.get(1)?,
                    gpu: row.get(2)?,
                    driver: row.get(3)?,
                    toolkit: row.get(4)?,
                },
                row.get::<_, String>(5)?,
                row.get::<_, String>(6)?,
                row.get::<_, Option<String>>(7)?,
                row.get::<_, Option<String>>(8)?,
                row.get::<_, String>(9)?,
            ))
        })?;
        let mut entries = Vec::new();
        for row in rows {
            let (key, recipe, name, measured, failure, date) = row?;
            entries.push(Entry {
                key,
                name,
                recipe: stored_recipe(&recipe)?,
                measured: measured.as_deref().map(serde_json::from_str).transpose()?,
                failure,
                date,
            });
        }
        Ok(entries)
    }

    /// Everything as a JSON document for [`Database::import`].
    ///
    /// # Errors
    /// As of [`Database::all`].
    pub fn export(&self) -> Result<String, DatabaseError> {
        Ok(serde_json::to_string_pretty(&Export::new(self.all()?))?)
    }

    /// Adds the measurements of an exported document, all or none; returns how many there were.
    ///
    /// # Errors
    /// [`DatabaseError::Json`], [`DatabaseError::Schema`], and as of [`Database::put`]; nothing is stored then.
    pub fn import(&mut self, json: &str) -> Result<usize, DatabaseError> {
        let document: Export = serde_json::from_str(json)?;
        if document.schema == 0 || document.schema > SCHEMA {
            return Err(DatabaseError::Schema {
                found: document.schema,
            });
        }
        self.connection.execute_batch("BEGIN")?;
        for entry in &document.measurements {
            if let Err(e) = self.put(entry) {
                self.connection.execute_batch("ROLLBACK")?;
                return Err(e);
            }
        }
        self.connection.execute_batch("COMMIT")?;
        Ok(document.measurements.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpwright_pass::passes::MaxNReg;

    fn entry(recipe: Recipe, median_ns: f64) -> Entry {
        let key = Key {
            kernel: kernel_hash(".version 9.0", "k"),
            launch: "l".into(),
            gpu: "NVIDIA H200".into(),
            driver: "580.1".into(),
            toolkit: "13.5".into(),
        };
        let interval_ns = (median_ns * 0.99, median_ns * 1.01);
        let measured = Measured {
            median_ns,
            interval_ns,
            relative_time: 1.0,
        };
        Entry {
            key,
            name: "k".into(),
            recipe,
            measured: Some(measured),
            failure: None,
            date: "2026-11-21".into(),
        }
    }

    #[test]
    fn what_was_put_comes_back_and_travels() {
        let database = Database::in_memory().unwrap();
        let a = entry(Recipe::default(), 10.0);
        let b = entry(Recipe::default().with(MaxNReg { registers: 64 }), 8.0);
        database.put(&a).unwrap();
        database.put(&b).unwrap();
        database.put(&b).unwrap();
        assert_eq!(database.get(&b.key, &b.recipe).unwrap(), Some(b.clone()));
        assert_eq!(
            database
                .of_kernel(&a.key.kernel, "h200", "13.5")
                .unwrap()
                .len(),
            2
        );
        assert!(
            database
                .of_kernel(&a.key.kernel, "a100", "13.5")
                .unwrap()
                .is_empty()
        );

        let mut other = Database::in_memory().unwrap();
        assert_eq!(other.import(&database.export().unwrap()).unwrap(), 2);
        assert_eq!(other.all().unwrap(), database.all().unwrap());
    }

    #[test]
    fn a_bad_document_changes_nothing() {
        let mut database = Database::in_memory().unwrap();
        assert!(database.import("{").is_err());
        assert!(matches!(
            database.import(r#"{"schema": 9, "measurements": []}"#),
            Err(DatabaseError::Schema { found: 9 })
        ));
        assert!(database.all().unwrap().is_empty());
    }

    #[test]
    fn recipes_of_the_first_version_are_rewritten() {
        let connection = Connection::open_in_memory().unwrap();
        let database = Database::prepare(connection).unwrap();
        let limited = entry(Recipe::default().with(MaxNReg { registers: 64 }), 8.0);
        database.put(&limited).unwrap();
        let Database { connection } = database;
        let old = r#"[{"decision":"max-registers","registers":64}]"#;
        connection
            .execute("UPDATE measurement SET recipe = ?1", [old])
            .unwrap();
        connection.execute_batch("PRAGMA user_version = 1").unwrap();
        let database = Database::prepare(connection).unwrap();
        let found = database.get(&limited.key, &limited.recipe).unwrap();
        assert_eq!(found, Some(limited));
    }

    #[test]
    fn hashes_tell_boundaries_apart() {
        assert_ne!(kernel_hash("ab", "c"), kernel_hash("a", "bc"));
    }
}
