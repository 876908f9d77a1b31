//! Tests of the public interface: the paper's claims, and runs that fail or are interrupted.

/// The paper's experiments at a small size. They are a step of their own in `make test`.
mod reproduction {
    mod claims;
}
mod runs;
