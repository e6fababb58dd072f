"""What a person is told when a request has no answer: one table for exceptions, one for statuses."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from probes.retry import retry_after
from ringtrue.records import EndpointSpec, Failure, FailureKind, Party
from ringtrue.wire import error_text, parse_json

# The first row that fits holds.
_RAISED: tuple[tuple[type[Exception], FailureKind, str, str], ...] = (
    (
        httpx.ConnectTimeout,
        FailureKind.CONNECT_TIMEOUT,
        "no connection within {wait}",
        "Check host, port and firewall, or raise limits.connect_timeout",
    ),
    (
        httpx.ConnectError,
        FailureKind.UNREACHABLE,
        "cannot connect ({reason})",
        "Check that the server runs and that base_url names its host and port",
    ),
    (
        httpx.RemoteProtocolError,
        FailureKind.BAD_SHAPE,
        "the answer is not HTTP ({reason})",
        "Check the port in base_url",
    ),
    (
        Exception,
        FailureKind.UNREACHABLE,
        "the connection broke before an answer ({reason})",
        "The server may have crashed or restarted: see its log",
    ),
)

_ABOUT_CAPABILITY = ("logprob", "token_ids", "echo", "top_k", "stream_options")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request went: the endpoint, and host and path as a person may read them."""

    spec: EndpointSpec
    shown: str

    def failure(
        self,
        kind: FailureKind,
        what: str,
        remedy: str = "",
        *,
        party: Party = Party.PROVIDER,
        status: int | None = None,
        wait: float | None = None,
    ) -> Failure:
        """A failure whose message reads: endpoint (host/path): what. Remedy."""
        message = f"{self.spec.name} ({self.shown}): {what}"
        return Failure(kind, f"{message}. {remedy}" if remedy else message, party, status, wait)


def failure_of_exception(error: Exception, place: Place, *, in_body: bool) -> Failure:
    """Map what httpx raised. ``in_body``: the status line had come."""
    reason = str(error) or type(error).__name__
    tls = _tls_error(error)
    if tls is not None:
        said = getattr(tls, "verify_message", "") or tls.reason or tls
        return place.failure(
            FailureKind.TLS,
            f"TLS failed: {said}",
            "Check host name and certificate; for a private CA set SSL_CERT_FILE, or verify_tls = false",
        )
    # httpcore calls a server that hangs up a protocol error as well.
    hung_up = isinstance(error, httpx.RemoteProtocolError) and "disconnected" in reason
    raised = httpx.ReadError if hung_up else type(error)
    kind, what, remedy = next(row[1:] for row in _RAISED if issubclass(raised, row[0]))
    if in_body:
        kind, what, remedy = FailureKind.TRUNCATED, "the connection broke inside the body ({reason})", ""
    wait = f"{place.spec.limits.connect_timeout:g} s"
    return place.failure(kind, what.format(reason=reason, wait=wait), remedy)


def failure_of_silence(place: Place, *, in_body: bool, total: bool) -> Failure:
    """The server fell silent, or never came to an end (``total``)."""
    limits = place.spec.limits
    if total:
        kind = FailureKind.READ_TIMEOUT if in_body else FailureKind.FIRST_BYTE_TIMEOUT
        return place.failure(
            kind, f"no end after {limits.total_timeout:g} s", "Lower max_tokens or raise limits.total_timeout"
        )
    if in_body:
        return place.failure(
            FailureKind.READ_TIMEOUT,
            f"the answer stopped: nothing for {limits.read_timeout:g} s",
            "What had come is kept; raise limits.read_timeout if this server pauses so long",
        )
    return place.failure(
        FailureKind.FIRST_BYTE_TIMEOUT,
        f"no byte of an answer within {limits.first_byte_timeout:g} s",
        "The server queues or hangs; raise limits.first_byte_timeout if that is its normal speed",
    )


def failure_of_status(
    status: int, headers: Mapping[str, str], body: bytes, place: Place, *, now: float
) -> Failure:
    """Map a status that is not 2xx. ``now`` is the time of day in seconds, for dates in Retry-After."""
    value, problem = parse_json(body)
    said = error_text(value)
    quoted = f': "{said}"' if said else " with a web page" if problem and problem.kind == "html" else ""
    what = f"HTTP {status}{quoted}"
    if status == 429:
        wait = retry_after(headers.get("retry-after"), now=now)
        asked = "" if wait is None else f", asking to wait {wait:g} s"
        return place.failure(
            FailureKind.RATE_LIMITED,
            f"{what}{asked}",
            "Lower limits.requests_per_second or limits.max_in_flight",
            status=status,
            wait=wait,
        )
    if status >= 500:
        wait = retry_after(headers.get("retry-after"), now=now)
        return place.failure(FailureKind.SERVER_ERROR, what, status=status, wait=wait)
    kind, remedy = _client_error(status, said, headers, place)
    return place.failure(kind, what, remedy, party=Party.CALLER, status=status)


def _client_error(
    status: int, said: str, headers: Mapping[str, str], place: Place
) -> tuple[FailureKind, str]:
    lowered = said.lower()
    if status in {401, 403}:
        key = place.spec.api_key
        return (
            FailureKind.UNAUTHORIZED,
            f"Check the key in {key}" if key else 'The server wants a key: set api_key = "env:NAME"',
        )
    if status == 404 and "model" in lowered:
        return (
            FailureKind.MODEL_NOT_FOUND,
            f"Check model = {place.spec.model!r} against the server's /v1/models",
        )
    if status in {404, 405}:
        return FailureKind.NOT_FOUND, "No such route: check base_url (it usually ends in /v1)"
    if 300 <= status < 400:
        target = headers.get("location", "").partition("?")[0]
        return FailureKind.NOT_FOUND, f"Redirects are not followed; set base_url to where it points: {target}"
    if any(word in lowered for word in _ABOUT_CAPABILITY):
        return (
            FailureKind.CAPABILITY_REFUSED,
            "The server cannot do this: `ringtrue inspect` shows what it can",
        )
    return FailureKind.REFUSED, "The request was not accepted; the server's message says why"


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """The innermost TLS error behind ``error``: the ones around it only repeat it."""
    cause = error.__cause__ or error.__context__
    inner = _tls_error(cause) if cause is not None else None
    # A handshake that merely waits for the other side leaves a "want" behind.
    waiting = isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError)
    return inner or (error if isinstance(error, ssl.SSLError) and not waiting else None)
