//! Pointsman in Python: the extension module `pointsman._native`.
//!
//! Bindings only: they convert, call and convert back. What a user sees, with scikit-learn's habits, is the package in
//! `python/pointsman`; all arithmetic is the core's.

mod decisions;
mod error;
mod frame;
mod partial;
mod policy;
mod read;
mod report;
mod router;
mod rows;
mod table;
mod task;
mod votes;
mod work;

/// Arrays of a million rows come and go with each call: this one keeps their pages for the next instead of asking the system anew.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::decisions::Decisions;
    #[pymodule_export]
    use crate::frame::Frame;
    #[pymodule_export]
    use crate::partial::{Partial, number_ids};
    #[pymodule_export]
    use crate::policy::{Judgement, Policy};
    #[pymodule_export]
    use crate::read::read;
    #[pymodule_export]
    use crate::report::{Diagnosis, Report, compare, diagnose};
    #[pymodule_export]
    use crate::router::Router;
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::task::{Loss, Oracle, Task};
    #[pymodule_export]
    use crate::votes::count_labels;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// How many steps a diagnosis takes.
    #[pymodule_export]
    const DIAGNOSIS_STEPS: usize = pointsman::diagnose::DIAGNOSIS_STEPS;
}
