//! Pointsman in Python: the extension module `pointsman._native`.
//!
//! These bindings only convert arguments, call the core and convert results. Users import the package in `python/pointsman`, which follows
//! the conventions of scikit-learn. All arithmetic is in the core.

mod decisions;
mod error;
mod frame;
mod loss;
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

/// An allocator that keeps freed pages, since calls allocate and free arrays of a million rows and new pages from the system are slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::decisions::Decisions;
    #[pymodule_export]
    use crate::frame::Frame;
    #[pymodule_export]
    use crate::loss::Loss;
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
    use crate::task::{Oracle, Task};
    #[pymodule_export]
    use crate::votes::count_labels;

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// The number of progress steps of a diagnosis.
    #[pymodule_export]
    const DIAGNOSIS_STEPS: usize = pointsman::diagnose::DIAGNOSIS_STEPS;
}
