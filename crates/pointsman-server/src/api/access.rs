//! Who asks, and what they may do: checked before any handler, in a layer, or for decisions in an extractor, which takes less time.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use super::problem::{Kind, Problem};
use crate::app::App;
use crate::keys;
use crate::store::{Key, Scope};

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The number of its key; 0 without one.
    pub(crate) key: i64,
    /// Its name in the log of administration.
    pub(crate) name: Arc<str>,
}

/// Whether keys are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody may do everything: only on a loopback address, and only until there is a key. Disabling the last one opens nothing.
    Open,
    /// Every request needs a key.
    Keys,
}

/// A handler's requirement, with the state that is needed to check it.
#[derive(Debug, Clone)]
pub(crate) struct Require {
    pub(crate) app: Arc<App>,
    pub(crate) scope: Scope,
}

/// Lets a request pass if its key has the scope.
pub(crate) async fn require(
    State(Require { app, scope }): State<Require>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let caller = identify(&app, request.headers(), scope)?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

fn identify(app: &App, headers: &HeaderMap, scope: Scope) -> Result<Caller, Problem> {
    let now = app.deployments.now();
    let Some(given) = bearer(headers) else {
        if !app.needs_key() {
            return Ok(Caller { key: 0, name: Arc::clone(&app.loopback) });
        }
        let detail = "send a key as Authorization: Bearer pk_…; `pointsman keys add` makes one";
        return Err(Problem::new(Kind::Unauthorized, detail));
    };
    let key = keys::find(given, |public| now.keys.get(public).cloned());
    let key = key.ok_or_else(|| Problem::new(Kind::Unauthorized, "the key is unknown or disabled"))?;
    if !(key.scopes.contains(&scope) || key.scopes.contains(&Scope::Admin)) {
        let (name, scope) = (&key.name, scope.name());
        return Err(Problem::new(Kind::Forbidden, format!("the key {name:?} does not have the scope {scope:?}")));
    }
    app.rates.admit(&key)?;
    Ok(Caller { key: key.number, name: Arc::from(key.name.as_str()) })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::new(Kind::Internal, "this address has no access rule"))
    }
}

/// Who asks for decisions. The key is checked when a handler takes this, first of all its arguments, and not in a layer.
#[derive(Debug)]
pub(crate) struct Decider(pub(crate) Caller);

impl FromRequestParts<Arc<App>> for Decider {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        identify(app, &parts.headers, Scope::Decide).map(Self)
    }
}

/// How many requests each key may still make.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    /// The limiter of each key, with the rate it was made for.
    limiters: Mutex<HashMap<i64, (NonZeroU32, Arc<DefaultDirectRateLimiter>)>>,
}

impl Rates {
    fn admit(&self, key: &Key) -> Result<(), Problem> {
        let Some(rate) = key.rate.and_then(NonZeroU32::new) else { return Ok(()) };
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || (rate, Arc::new(RateLimiter::direct(Quota::per_second(rate))));
        let entry = limiters.entry(key.number).or_insert_with(new);
        if entry.0 != rate {
            *entry = new();
        }
        let is_free = entry.1.check().is_ok();
        drop(limiters);
        if is_free {
            return Ok(());
        }
        let detail = format!("the key {:?} may make {rate} requests per second", key.name);
        Err(Problem::new(Kind::TooManyRequests, detail))
    }
}
