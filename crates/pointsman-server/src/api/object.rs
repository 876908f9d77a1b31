//! Bodies that are JSON objects, and nothing else.
//!
//! What serde derives for a struct also reads a list, as its fields in order: `["q1", [0.3, 0.7]]` would be a query.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// A struct that is read from a JSON object.
pub(crate) trait FromObject: for<'de> Deserialize<'de> {
    /// What to give instead of a list.
    const EXAMPLE: &'static str;
}

/// A value that is read from a JSON object only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: FromObject> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(ObjectOnly { inner: deserializer, target: PhantomData::<T> }).map(Self)
    }
}

/// A deserializer that gives no list to a struct.
struct ObjectOnly<D, T> {
    inner: D,
    target: PhantomData<T>,
}

impl<'de, D: Deserializer<'de>, T: FromObject> Deserializer<'de> for ObjectOnly<D, T> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(name, fields, NoList { inner: visitor, target: self.target })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

/// A visitor that refuses lists.
struct NoList<V, T> {
    inner: V,
    target: PhantomData<T>,
}

impl<'de, V: Visitor<'de>, T: FromObject> Visitor<'de> for NoList<V, T> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object, such as {}", T::EXAMPLE)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<V::Value, A::Error> {
        Err(A::Error::custom(format_args!("this is a list: give an object, such as {}", T::EXAMPLE)))
    }
}
