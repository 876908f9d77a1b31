//! Matrices in the memory of numpy or Arrow.

use arrow_buffer::ScalarBuffer;
use numpy::{PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::{Refusal, refused};

/// A matrix of an Arrow table, row by row. It shares Arrow's memory if that has the same layout, else it is a copy.
#[pyclass(frozen, module = "pointsman._native")]
pub(crate) struct Rows {
    pub(crate) width: usize,
    pub(crate) values: Values,
}

pub(crate) enum Values {
    Single(ScalarBuffer<f32>),
    Double(ScalarBuffer<f64>),
}

#[pymethods]
impl Rows {
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.len() / self.width.max(1), self.width)
    }

    /// A copy as a numpy array.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let values: Vec<f64> = match &self.values {
            Values::Single(values) => values.iter().map(|&x| f64::from(x)).collect(),
            Values::Double(values) => values.to_vec(),
        };
        let array = numpy::ndarray::Array2::from_shape_vec(self.shape(), values)
            .map_err(|error| refused(Refusal::new(error.to_string())))?;
        Ok(PyArray2::from_owned_array(py, array))
    }

    /// The address of the numbers, which is that of an Arrow buffer if they were not copied.
    #[getter]
    fn address(&self) -> usize {
        match &self.values {
            Values::Single(values) => values.as_ptr() as usize,
            Values::Double(values) => values.as_ptr() as usize,
        }
    }
}

impl Rows {
    fn len(&self) -> usize {
        match &self.values {
            Values::Single(values) => values.len(),
            Values::Double(values) => values.len(),
        }
    }
}

/// A borrowed matrix argument.
pub(crate) enum Matrix<'py> {
    Single(PyReadonlyArray2<'py, f32>),
    Double(PyReadonlyArray2<'py, f64>),
    Arrow(Bound<'py, Rows>),
}

/// The numbers of a matrix, row by row.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    Single(&'a [f32]),
    Double(&'a [f64]),
}

impl<'py> FromPyObject<'_, 'py> for Matrix<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(rows) = object.cast::<Rows>() {
            return Ok(Self::Arrow(rows.to_owned()));
        }
        if let Ok(array) = object.extract() {
            return Ok(Self::Single(array));
        }
        match object.extract() {
            Ok(array) => Ok(Self::Double(array)),
            Err(_) => Err(PyTypeError::new_err("a two-dimensional array of float32 or float64 is needed")),
        }
    }
}

impl Matrix<'_> {
    /// Rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        let of = |shape: &[usize]| (shape[0], shape[1]);
        match self {
            Self::Single(array) => of(array.shape()),
            Self::Double(array) => of(array.shape()),
            Self::Arrow(rows) => rows.get().shape(),
        }
    }

    pub(crate) fn numbers(&self) -> PyResult<Numbers<'_>> {
        let scattered = |_| refused(Refusal::new("the array is not contiguous in C order: numpy.ascontiguousarray"));
        match self {
            Self::Single(array) => Ok(Numbers::Single(array.as_slice().map_err(scattered)?)),
            Self::Double(array) => Ok(Numbers::Double(array.as_slice().map_err(scattered)?)),
            Self::Arrow(rows) => Ok(match &rows.get().values {
                Values::Single(values) => Numbers::Single(values),
                Values::Double(values) => Numbers::Double(values),
            }),
        }
    }

    /// A copy in double precision.
    pub(crate) fn to_doubles(&self) -> PyResult<Vec<f64>> {
        Ok(match self.numbers()? {
            Numbers::Single(values) => values.iter().map(|&x| f64::from(x)).collect(),
            Numbers::Double(values) => values.to_vec(),
        })
    }
}
