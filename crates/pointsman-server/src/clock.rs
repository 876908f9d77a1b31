//! The time, and ids of decisions that are ordered by it.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::RngExt;
use uuid::Uuid;

/// Bits of a time stamp below a millisecond.
const FRACTION_BITS: u32 = 12;

/// A time in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Time(pub i64);

const MICROS_PER_DAY: i64 = 86_400_000_000;

impl Time {
    /// Now, by the system's clock.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    /// This long before.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// The beginning of its day, in UTC.
    pub(crate) fn start_of_day(self) -> Self {
        Self(self.0 - self.0.rem_euclid(MICROS_PER_DAY))
    }

    /// The smallest id of this millisecond.
    #[must_use]
    pub fn first_id(self) -> Uuid {
        let millis = u64::try_from(self.0 / 1000).unwrap_or(0);
        compose(millis << FRACTION_BITS, 0)
    }
}

impl fmt::Display for Time {
    /// As in `2026-01-31T12:00:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => time.fmt(f),
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}

impl FromStr for Time {
    type Err = String;

    /// Reads seconds or microseconds since 1970, a time such as `2026-01-31T12:00:00Z`, or a day such as `2026-01-31`, which begins in
    /// UTC.
    fn from_str(text: &str) -> Result<Self, String> {
        /// Whole numbers from here on are microseconds: as seconds, they would be later than the year 5000.
        const MICROSECONDS_FROM: i64 = 100_000_000_000;
        let refuse = || {
            format!(
                "{text:?} is not a time: give seconds since 1970, or one such as 2026-01-31T12:00:00Z or 2026-01-31"
            )
        };
        if let Ok(number) = text.parse::<i64>() {
            return Ok(Self(if number.abs() < MICROSECONDS_FROM { number * 1_000_000 } else { number }));
        }
        if let Ok(time) = text.parse::<jiff::Timestamp>() {
            return Ok(Self(time.as_microsecond()));
        }
        // A day without a time is its beginning in UTC. Something that has a time but no zone is refused: whose time it is nobody knows.
        let is_day = text.len() == "2026-01-31".len();
        let day = text.parse::<jiff::civil::Date>().ok().filter(|_| is_day).ok_or_else(refuse)?;
        let start = day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| refuse())?;
        Ok(Self(start.timestamp().as_microsecond()))
    }
}

/// Makes ids (UUID version 7) that increase strictly, also if the system's clock is set back.
#[derive(Debug)]
pub struct Ids {
    /// The time of the last id: milliseconds and a fraction of 12 bits.
    last: AtomicU64,
}

impl Ids {
    /// Ids that come after the largest one there is.
    #[must_use]
    pub fn after(largest: Option<Uuid>) -> Self {
        Self { last: AtomicU64::new(largest.map_or(0, stamp)) }
    }

    /// The next id, and the time in it.
    pub fn next(&self) -> (Uuid, Time) {
        self.next_at(Time::now())
    }

    /// The next id if this is what the clock shows.
    fn next_at(&self, now: Time) -> (Uuid, Time) {
        let (millis, micros) = (now.0.max(0) as u64 / 1000, now.0.max(0) as u64 % 1000);
        let wanted = millis << FRACTION_BITS | micros << FRACTION_BITS >> 10;
        let raise = |last: u64| Some(wanted.max(last + 1));
        // The update never declines, so both results hold the last stamp.
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise).unwrap_or_else(|last| last);
        let stamp = wanted.max(last + 1);
        (compose(stamp, rand::rng().random()), Time(((stamp >> FRACTION_BITS) * 1000) as i64))
    }
}

/// The time stamp of an id, in units of a millisecond over 4096. Ids of one store have different ones, which increase as they do.
pub(crate) fn stamp(id: Uuid) -> u64 {
    let bits = id.as_u128();
    let millis = (bits >> 80) as u64;
    millis << FRACTION_BITS | (bits >> 64) as u64 & ((1 << FRACTION_BITS) - 1)
}

fn compose(stamp: u64, random: u64) -> Uuid {
    let (millis, fraction) = (stamp >> FRACTION_BITS, stamp & ((1 << FRACTION_BITS) - 1));
    let high = millis << 16 | 0x7000 | fraction;
    let low = random >> 2 | 0x8000_0000_0000_0000;
    Uuid::from_u64_pair(high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_and_are_version_seven() {
        let ids = Ids::after(None);
        let made: Vec<Uuid> = (0..20_000).map(|_| ids.next().0).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(made.iter().all(|id| id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122));
    }

    #[test]
    fn ids_stay_ordered_if_the_clock_is_set_back() {
        let tomorrow = Time(Time::now().0 + 86_400_000_000);
        let largest = tomorrow.first_id();
        let ids = Ids::after(Some(largest));
        let (first, second) = (ids.next().0, ids.next().0);
        assert!(largest < first && first < second);
        // Set back while the process runs, to before 1970 in the end; then it shows the right time again.
        let times = [86_400_000_000, 86_400_000_000, 1_000_000, 0, -5, i64::MIN, 86_400_000_001];
        let ids = Ids::after(None);
        let made: Vec<(Uuid, Time)> = times.into_iter().map(|now| ids.next_at(Time(now))).collect();
        assert!(made.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1), "{made:?}");
    }

    #[test]
    fn times_bound_their_ids() {
        let (id, time) = Ids::after(None).next();
        assert!(time.first_id() <= id && id < Time(time.0 + 1000).first_id());
    }

    #[test]
    fn threads_never_share_an_id() {
        let ids = Ids::after(None);
        let make = || (0..5_000).map(|_| ids.next().0).collect::<Vec<_>>();
        let mut all: Vec<Uuid> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 20_000);
    }
}
