//! The lab from outside: its claims, and its runs when something goes wrong.

mod claims;
mod runs;
