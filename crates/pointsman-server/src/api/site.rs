//! Requests that the page of another site makes a browser send: the browser runs on a machine that reaches the service, the page does not.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, Method, header};

use super::problem::{Kind, Problem};

/// What a browser says of the page that sends a request.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses what changes something or decides, if a browser sends it for a page of another site.
pub(crate) fn check_site(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if method.is_safe() {
        return Ok(());
    }
    let is_own = match (headers.get(SEC_FETCH_SITE), headers.get(header::ORIGIN)) {
        (Some(site), _) => site == "same-origin" || site == "none",
        // Older browsers say only where the page is from.
        (None, Some(origin)) => headers.get(header::HOST).is_some_and(|host| is_at(origin.as_bytes(), host.as_bytes())),
        (None, None) => true,
    };
    if is_own {
        return Ok(());
    }
    let detail =
        "a browser sends this for a page of another site (Sec-Fetch-Site, Origin), which may not use this service";
    Err(Problem::new(Kind::OtherSite, detail))
}

/// Whether an origin, such as `http://localhost:7070`, is at this host and port.
fn is_at(origin: &[u8], host: &[u8]) -> bool {
    let origin_host = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme.as_bytes()));
    origin_host.is_some_and(|origin_host| origin_host.eq_ignore_ascii_case(host))
}

/// Refuses requests to another host than this machine. A page whose name leads to this machine (DNS rebinding) is of the same site as the
/// service for a browser, and only this header shows it.
pub(crate) fn check_host(headers: &HeaderMap) -> Result<(), Problem> {
    // Every browser sends it.
    let Some(host) = headers.get(header::HOST) else { return Ok(()) };
    if host.to_str().is_ok_and(is_loopback) {
        return Ok(());
    }
    let detail = format!(
        "the header Host is {host:?}: while the service needs no key, it answers on this machine only, as localhost, 127.0.0.1 or \
         [::1]; `pointsman keys add` makes a key"
    );
    Err(Problem::new(Kind::OtherSite, detail))
}

/// Whether a host, with or without a port, is this machine.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine_are_known() {
        for own in ["localhost", "LocalHost:80", "127.0.0.1", "127.9.9.9:7070", "[::1]", "[::1]:7070"] {
            assert!(is_loopback(own), "{own}");
        }
        let others =
            ["evil.example", "localhost.evil.example:7070", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "[::1", ""];
        for other in others {
            assert!(!is_loopback(other), "{other}");
        }
    }
}
