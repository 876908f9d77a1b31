//! Reports of small synthetic tables: their schema, figures and page.

mod figures;
mod page;
mod savings;
mod schema;
mod world;
