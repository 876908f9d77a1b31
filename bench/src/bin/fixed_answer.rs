//! The peer of the service's benchmark: it parses the body of a decision and answers the same bytes every time, without a store.
//!
//! `fixed_answer [ROUTER TASK]` prints the address that it listens at. With a router and a task, `/decide-first` also makes the decision before
//! it answers the fixed bytes: what remains is the service's part.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use pointsman::Policy;
use pointsman_table::{load_router, read_task};
use serde::Deserialize;
use tokio::net::TcpListener;

/// The service's allocator, so that it is not what makes the difference.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// About as long as the service's answer.
const ANSWER: &str = concat!(
    r#"{"decision_id":"019a91c2-7f3e-7a10-9c55-2f6d0b1f4e77","version":1,"action":"predict","label":"class0","cell":3,"support":"enough","#,
    r#""reason":"easy","irreducible":0.1234567890123456,"reducible":0.0123456789012345,"costs":{"predict":0.1358024679135801,"#,
    r#""route:expert":0.2034567890123456,"abstain":0.47},"margin":0.0676543210987655,"audited":false}"#
);

/// The fields of a decision's body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    #[serde(default)]
    id: Option<String>,
    probs: Vec<f64>,
    #[serde(default)]
    features: Option<Vec<Option<f64>>>,
}

async fn decide(body: Bytes) -> Response {
    match serde_json::from_slice::<Query>(&body) {
        Ok(Query { id, probs, features }) if !probs.is_empty() => {
            std::hint::black_box((id, probs, features));
            ([(header::CONTENT_TYPE, "application/json")], ANSWER).into_response()
        }
        _ => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// A query whose features have names.
#[derive(Deserialize)]
struct NamedQuery {
    probs: Vec<f64>,
    features: HashMap<String, f64>,
}

async fn decide_first(State(policy): State<Arc<Policy>>, body: Bytes) -> Response {
    let Ok(NamedQuery { probs, features }) = serde_json::from_slice(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let in_order: Option<Vec<f64>> = policy.cells().features().iter().map(|name| features.get(name).copied()).collect();
    match in_order.and_then(|features| policy.decide_with(&probs, &features).ok()) {
        Some(decision) => {
            std::hint::black_box(decision);
            ([(header::CONTENT_TYPE, "application/json")], ANSWER).into_response()
        }
        None => StatusCode::BAD_REQUEST.into_response(),
    }
}

/// A language model that answers at once, for the comparison with a proxy.
const COMPLETION: &str = concat!(
    r#"{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"big","choices":[{"index":0,"#,
    r#""message":{"role":"assistant","content":"refund"},"finish_reason":"stop"}],"#,
    r#""usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}"#
);

async fn complete(body: Bytes) -> Response {
    match serde_json::from_slice::<serde_json::Value>(&body) {
        Ok(_) => ([(header::CONTENT_TYPE, "application/json")], COMPLETION).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/decide", listener.local_addr()?);
    let mut app = Router::new().route("/decide", post(decide)).route("/v1/chat/completions", post(complete));
    if let [router, task] = &std::env::args().skip(1).collect::<Vec<_>>()[..] {
        let policy = load_router(router)?.policy(&read_task(task)?)?;
        app = app.merge(Router::new().route("/decide-first", post(decide_first)).with_state(Arc::new(policy)));
    }
    Ok(axum::serve(listener, app).await?)
}
