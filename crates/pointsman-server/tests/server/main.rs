//! Tests of the service without a port: requests are given to the router of all addresses.

mod api_page;
mod archives;
mod clock_set_back;
mod conformance;
mod decide;
mod expiry;
mod export;
mod following;
mod formats;
mod hostile;
mod operation;
mod postgres;
mod support;
mod versions;
mod what_if;
