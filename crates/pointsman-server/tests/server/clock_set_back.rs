//! The system's clock set back: ids stay unique and in order, and decisions are found by time.

use std::collections::HashSet;

use pointsman_server::clock::{Ids, Time};
use serde_json::json;
use uuid::Uuid;

use crate::conformance::record;
use crate::support::{Service, policy};

const DECIDE: &str = "/v1/deployments/d/decide";
const DAY_MICROS: i64 = 86_400_000_000;

#[tokio::test]
async fn ids_go_on_and_pages_by_time_are_whole() {
    let service = Service::new().await;
    service.deploy(&policy()).await;
    let query = json!({"probs": [0.5, 0.3, 0.2]});
    let first = service.post(DECIDE, query.clone()).await.ok();
    // Decisions of a service whose clock was a day ahead, before it was set back.
    let tomorrow = Time(Time::now().0 + DAY_MICROS);
    let ids = Ids::after(Some(tomorrow.first_id()));
    let template = service.app.store.decision(first["decision_id"].as_str().unwrap().parse().unwrap()).await.unwrap();
    let ahead: Vec<_> = (0..5)
        .map(|_| {
            let mut ahead = template.clone().unwrap();
            (ahead.id, ahead.at) = ids.next();
            ahead
        })
        .collect();
    let last_ahead = ahead.last().unwrap().id;
    service.app.store.append(ahead.into()).await.unwrap();
    let service = service.restart().await;
    let mut made: Vec<Uuid> = Vec::new();
    for _ in 0..20 {
        let answer = service.post(DECIDE, query.clone()).await.ok();
        made.push(answer["decision_id"].as_str().unwrap().parse().unwrap());
    }
    assert!(made[0] > last_ahead && made.windows(2).all(|pair| pair[0] < pair[1]), "ids are out of order");
    // All decisions, in pages of seven.
    let mut all: Vec<Uuid> = Vec::new();
    loop {
        let after = all.last().map_or_else(String::new, |id| format!("&after={id}"));
        let page = service.get(&format!("/v1/deployments/d/decisions?limit=7{after}")).await.ok();
        let ids = page["decisions"].as_array().unwrap().iter();
        all.extend(ids.map(|decision| decision["decision_id"].as_str().unwrap().parse::<Uuid>().unwrap()));
        if page["next"].is_null() {
            break;
        }
    }
    assert_eq!(all.len(), 26);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 26, "an id is there twice");
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "pages are out of order");
    assert_eq!(all[6..], made);
    // By time: what was decided before the clock was set back, and everything since the day that it showed.
    let count = async |period: String| {
        let page = service.get(&format!("/v1/deployments/d/decisions?limit=100&{period}")).await.ok();
        page["decisions"].as_array().unwrap().len()
    };
    assert_eq!(count(format!("from={}", tomorrow.0)).await, 25);
    assert_eq!(count(format!("to={}", tomorrow.0)).await, 1);
    let what_if = service.post("/v1/deployments/d/what-if", json!({"from": tomorrow.0.to_string()})).await.ok();
    assert_eq!(what_if["decisions"], 25);
}

#[tokio::test]
async fn nothing_of_the_future_expires() {
    let service = Service::new().await;
    let ids = Ids::after(Some(Time(Time::now().0 + DAY_MICROS).first_id()));
    let ahead = record(&ids, None);
    let id = ahead.id;
    service.app.store.append(vec![ahead].into()).await.unwrap();
    let service = service.restart().await;
    service.app.store.prune(Some(Time::now()), Some(Time::now())).await.unwrap();
    assert!(service.app.store.decision(id).await.unwrap().is_some());
}
