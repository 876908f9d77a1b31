//! Connections whose peer takes no bytes any more.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that fails once a write has waited for the peer longer than a limit.
///
/// Without it, a client that never reads its answer keeps the connection and the answer for ever.
#[derive(Debug)]
pub(crate) struct WriteLimited<S> {
    stream: S,
    limit: Duration,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteLimited<S> {
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, waiting: None }
    }

    /// The outcome of a write, or an error if writes have waited too long.
    fn limit<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.waiting = None;
            return outcome;
        }
        let limit = self.limit;
        ready!(self.waiting.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(context));
        self.waiting = None;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteLimited<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteLimited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.limit(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.limit(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.limit(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.limit(cx, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(50);

    /// The pipe takes 8 bytes until its other end is read.
    #[tokio::test]
    async fn writes_end_if_the_peer_does_not_read() {
        let (own, _other) = duplex(8);
        let error = WriteLimited::new(own, LIMIT).write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// Every byte that the peer takes starts the limit anew, so that a slow peer gets a long answer.
    #[tokio::test]
    async fn slow_peers_are_waited_for() {
        let (own, mut other) = duplex(8);
        let reader = tokio::spawn(async move {
            let (mut read, mut bytes) = (0, [0; 8]);
            while read < 80 {
                tokio::time::sleep(LIMIT / 5).await;
                read += other.read(&mut bytes).await.unwrap();
            }
            read
        });
        WriteLimited::new(own, LIMIT).write_all(&[0; 80]).await.unwrap();
        assert_eq!(reader.await.unwrap(), 80);
    }
}
