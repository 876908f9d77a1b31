//! Access keys: `pk_<public>_<secret>`. Only a hash of the secret is stored.

use std::sync::Arc;

use rand::RngExt;
use rand::distr::Alphanumeric;
use subtle::ConstantTimeEq;

use crate::store::{Key, Sha256};

const PUBLIC_CHARACTERS: usize = 12;
const SECRET_CHARACTERS: usize = 40;

/// A new key, with the secret that is shown once.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The whole key, as callers send it.
    pub text: String,
    /// The part that is not secret.
    pub public: String,
    /// The SHA-256 of the secret part.
    pub secret_hash: Sha256,
}

impl NewKey {
    /// A random key.
    #[must_use]
    pub fn random() -> Self {
        let draw = |n: usize| rand::rng().sample_iter(Alphanumeric).take(n).map(char::from).collect::<String>();
        let (public, secret) = (draw(PUBLIC_CHARACTERS), draw(SECRET_CHARACTERS));
        Self { text: format!("pk_{public}_{secret}"), secret_hash: Sha256::of(secret.as_bytes()), public }
    }
}

/// The key that a caller sent, if its secret is right. The comparison takes the same time wherever the secrets differ.
pub(crate) fn find(given: &str, known: impl FnOnce(&str) -> Option<Arc<Key>>) -> Option<Arc<Key>> {
    let (public, secret) = given.strip_prefix("pk_")?.split_once('_')?;
    let key = known(public)?;
    let is_right = Sha256::of(secret.as_bytes()).0.ct_eq(&key.secret_hash.0);
    bool::from(is_right).then_some(key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::clock::Time;

    #[test]
    fn only_the_right_secret_opens() {
        let new = NewKey::random();
        let key = Arc::new(Key {
            number: 1,
            name: "app".to_owned(),
            public: new.public.clone(),
            secret_hash: new.secret_hash,
            scopes: BTreeSet::new(),
            rate: None,
            disabled: false,
            created: Time(0),
        });
        let known = |public: &str| (public == new.public).then(|| Arc::clone(&key));
        assert!(find(&new.text, known).is_some());
        let mut wrong = new.text.clone();
        wrong.pop();
        for bad in [wrong, format!("{}x", new.text), new.public.clone(), "pk_a_b".to_owned(), String::new()] {
            assert!(find(&bad, known).is_none(), "{bad}");
        }
    }

    #[test]
    fn keys_differ() {
        assert_ne!(NewKey::random().text, NewKey::random().text);
    }
}
