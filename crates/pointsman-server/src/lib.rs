//! The HTTP service of Pointsman.
//!
//! A request is authenticated, parsed and checked, decided, **committed to the log, and then answered**. Whatever was answered can be
//! explained, priced anew and learned from afterwards.
//!
//! * [`app`] makes an [`axum::Router`] of an [`App`], so that everything can be tested without a port;
//! * [`store`] is the contract of what is kept, with a store in SQLite files and one in PostgreSQL;
//! * [`deployment`] holds the policies that decide now, which are replaced as a whole when something changes;
//! * [`config`] reads the configuration, and [`serve`] runs it.

mod answer;
mod api;
mod app;
pub mod clock;
pub mod config;
mod counters;
pub mod deployment;
mod in_flight;
pub mod keys;
mod metrics;
mod query;
mod replay;
mod serve;
mod stalled;
pub mod store;
mod table;

pub use api::access::Access;
pub use app::{Api, App, Limits, OnLogFailure, Settings, app};
pub use metrics::Metrics;
pub use serve::{ServeError, serve};
