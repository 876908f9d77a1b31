//! Everything this crate promises about files, tested through its public interface.

mod annotations;
mod bad_input;
mod class_names;
mod damage;
mod formats;
mod keep;
mod leaves;
mod normalize;
mod options;
mod partial;
mod policy;
mod real_data;
mod router;
mod several;
mod support;
mod task;
mod write;
