//! The address of a database, without its password wherever it is shown.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// How long a connection may take to be made, unless the address says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long sent bytes may stay unconfirmed, unless the address says otherwise: the time after which a server that vanished is given up.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection is silent before it is tested, unless the address says otherwise.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The address of a database: `postgres://user:password@host:5432/database?sslmode=verify-full&sslrootcert=ca.pem`.
#[derive(Clone, PartialEq)]
pub struct PostgresUrl {
    pub(super) config: Config,
    pub(super) tls: TlsMode,
}

/// Whether connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// They are not.
    Off,
    /// They are, and the server's certificate is checked against the usual authorities, or those of a file.
    Verified {
        /// The file of authorities, in PEM.
        authorities: Option<PathBuf>,
    },
}

impl FromStr for PostgresUrl {
    type Err = String;

    /// Reads an address. Messages contain no part of it that could be a password.
    fn from_str(text: &str) -> Result<Self, String> {
        let start_of_host = text.find('@').map_or(0, |at| at + 1);
        let (base, parameters) = match text[start_of_host..].find('?') {
            Some(place) => (&text[..start_of_host + place], &text[start_of_host + place + 1..]),
            None => (text, ""),
        };
        let (mut others, mut mode, mut authorities) = (Vec::new(), None, None);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let value = || percent_decode_str(parameter.split_once('=').map_or("", |(_, value)| value));
            match parameter.split('=').next() {
                Some("sslmode") => mode = Some(value().decode_utf8_lossy().into_owned()),
                Some("sslrootcert") => authorities = Some(PathBuf::from(value().decode_utf8_lossy().into_owned())),
                _ => others.push(parameter),
            }
        }
        let rest = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
        let mut config: Config = rest.parse().map_err(|_| {
            "give postgres://user:password@host:5432/database, with special characters of the user and the password as %XX, and \
             only parameters that PostgreSQL has"
                .to_owned()
        })?;
        if config.get_hosts().is_empty() {
            return Err("the host is missing: give postgres://user:password@host:5432/database".to_owned());
        }
        let tls = tls_mode(&config, mode.as_deref(), authorities)?;
        config.ssl_mode(if tls == TlsMode::Off { SslMode::Disable } else { SslMode::Require });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(TCP_USER_TIMEOUT);
        }
        if !parameters.contains("keepalives") {
            config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE / 3).keepalives_retries(3);
        }
        if config.get_application_name().is_none() {
            config.application_name("pointsman");
        }
        Ok(Self { config, tls })
    }
}

/// Whether to encrypt: always and verified beyond this machine, unless that is switched off.
fn tls_mode(config: &Config, mode: Option<&str>, authorities: Option<PathBuf>) -> Result<TlsMode, String> {
    let is_unix = |host: &Host| matches!(host, Host::Unix(_));
    match mode {
        Some("disable") => Ok(TlsMode::Off),
        Some(_) if config.get_hosts().iter().all(is_unix) => Ok(TlsMode::Off),
        None if config.get_hosts().iter().all(is_local) => Ok(TlsMode::Off),
        None | Some("require" | "verify-ca" | "verify-full") => Ok(TlsMode::Verified { authorities }),
        Some(_) => Err(
            "sslmode is disable or verify-full (require and verify-ca check the certificate in the same way); allow \
                        and prefer are refused, since they may send everything unencrypted"
                .to_owned(),
        ),
    }
}

/// Whether a host is this machine.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        let ports = self.config.get_ports();
        for (place, host) in self.config.get_hosts().iter().enumerate() {
            let port = ports.get(place).or(ports.first()).copied().unwrap_or(5432);
            let comma = if place > 0 { "," } else { "" };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}:{port}")?,
                Host::Unix(path) => write!(f, "{comma}{}:{port}", path.display())?,
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PostgresUrl, String> {
        text.parse()
    }

    #[test]
    fn connections_are_encrypted_beyond_this_machine() {
        let verified = |authorities: Option<&str>| TlsMode::Verified { authorities: authorities.map(PathBuf::from) };
        let cases = [
            ("postgres://u:p@localhost/d", TlsMode::Off),
            ("postgres://u:p@[::1]:5433/d", TlsMode::Off),
            ("postgres://u@%2Frun%2Fpostgresql/d?sslmode=verify-full", TlsMode::Off),
            ("postgres://u:p@db.example.org/d", verified(None)),
            ("postgres://u:p@localhost,db.example.org/d", verified(None)),
            ("postgres://u:p@db.example.org/d?sslmode=disable", TlsMode::Off),
            ("postgres://u:p@127.0.0.1/d?sslmode=require", verified(None)),
            ("postgres://u:p@h/d?sslrootcert=%2Fetc%2Fca.pem&connect_timeout=3", verified(Some("/etc/ca.pem"))),
        ];
        for (text, tls) in cases {
            assert_eq!(parse(text).unwrap().tls, tls, "{text}");
        }
        let timeout = parse("postgres://u:p@h/d?sslrootcert=x&connect_timeout=3").unwrap().config;
        assert_eq!(timeout.get_connect_timeout(), Some(&Duration::from_secs(3)));
        for mode in ["prefer", "allow", "on", ""] {
            let refused = parse(&format!("postgres://u:p@localhost/d?sslmode={mode}")).unwrap_err();
            assert!(refused.contains("verify-full"), "{refused}");
        }
    }

    #[test]
    fn passwords_are_never_shown() {
        let good = "postgresql://user:canary%2F1@h:6543,i/d?sslmode=disable";
        let url = parse(good).unwrap();
        assert_eq!(url.config.get_password(), Some(&b"canary/1"[..]));
        assert_eq!(url.to_string(), "postgres://user@h:6543,i:5432/d");
        for shown in [format!("{url}"), format!("{url:?}"), format!("{:?}", url.config)] {
            assert!(!shown.contains("canary"), "{shown}");
        }
        let bad = [
            "postgres://user:canary?x=1@h/d?nonsense=canary",
            "postgres://user:canary@h:port/d",
            "postgres://user:canary@/d",
            "postgres://user:canary@h/d?sslmode=canary",
            "postgres://user:%zz@h/d?canary=1",
        ];
        for text in bad {
            let error = parse(text).unwrap_err();
            assert!(!error.contains("canary"), "{text}: {error}");
        }
    }
}
