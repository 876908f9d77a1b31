//! Access keys: `pk_<public>_<secret>`. Only a hash of the secret is stored.

use std::borrow::Cow;
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

/// The text without the secrets of keys in it, so that a key that was sent in a wrong place is neither logged nor answered.
pub(crate) fn redact(text: &str) -> Cow<'_, str> {
    const START: &str = "pk_";
    /// Shorter ones are names that look like a key.
    const MIN_SECRET_CHARACTERS: usize = 16;
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(START) {
        let (before, key) = rest.split_at(start + START.len());
        kept.push_str(before);
        rest = key;
        let public = key.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(key.len());
        if let Some(secret) = key[public..].strip_prefix('_') {
            let end = secret.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(secret.len());
            if end >= MIN_SECRET_CHARACTERS && public > 0 {
                kept.push_str(&key[..=public]);
                kept.push('…');
                rest = &secret[end..];
            }
        }
    }
    if kept.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(kept + rest)
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
    fn secrets_are_left_out_of_texts() {
        let key = NewKey::random();
        let shown = format!("pk_{}_…", key.public);
        for around in ["{}", "/v1/{}/decide", "\"{}\" is not é time", "pk__{}", "Bearer {}, {}"] {
            assert_eq!(redact(&around.replace("{}", &key.text)), around.replace("{}", &shown), "{around}");
        }
        for around in ["{}{}", "pk_{}", "{}_{}"] {
            let text = around.replace("{}", &key.text);
            assert!(!redact(&text).contains(key.text.rsplit('_').next().unwrap()), "{text}");
        }
        for plain in ["", "pk_", "pk_a", "pk_a_b", "top_pk_one_two", "no key"] {
            assert_eq!(redact(plain), plain);
        }
    }

    #[test]
    fn keys_differ() {
        assert_ne!(NewKey::random().text, NewKey::random().text);
    }
}
