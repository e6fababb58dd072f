"""An endpoint over HTTP: the one place where probes touch the network.

A body is read raw and only then parsed: each socket read is stamped first, so
that parsing never sits inside a latency.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx
import orjson

from probes.address import parse_address
from probes.budget import Budget
from probes.clock import Clock, system_clock
from probes.dialects import dialect_named
from probes.failures import Place, failure_of_exception, failure_of_silence, failure_of_status
from probes.outcome import Outcome, read_outcome
from probes.received import Received
from probes.retry import pause_before_retry
from probes.transport import SESSION, AiohttpTransport
from ringtrue.endpoint import Reply
from ringtrue.errors import ConfigError
from ringtrue.payload import path_of
from ringtrue.records import Attempt, EndpointSpec, Exchange, Failure, FailureKind, Party, Request, WireChunk
from ringtrue.secrets import Secret, resolve_secret
from ringtrue.wire import parse_json

_MOST_BYTES = 256 * 1024 * 1024  # of one body: above, a server is only filling our memory


def connect(
    spec: EndpointSpec,
    env: Mapping[str, str],
    *,
    clock: Clock | None = None,
    rng: random.Random | None = None,
    budget: Budget | None = None,
) -> HttpEndpoint:
    """Make the endpoint that ``spec`` describes; nothing is sent yet.

    Raises:
        ConfigError: base_url or dialect is wrong; ``where`` names the endpoint.
        SecretError: its ``env:NAME`` key is not set.
    """
    try:
        secret = resolve_secret(spec.api_key, env)
        return HttpEndpoint(
            spec,
            secret=secret,
            clock=clock or system_clock(),
            rng=rng or random.Random(),  # noqa: S311  jitter of retries, no cryptography
            transport=AiohttpTransport(_tls_context(spec)),
            budget=budget,
        )
    except ConfigError as error:
        where = f"endpoint {spec.name}: {error.where}"
        raise type(error)(error.message, where=where, remedy=error.remedy) from None


class HttpEndpoint:
    """Implements ``ringtrue.endpoint.Endpoint`` over HTTP/1.1.

    A 429 pauses the whole endpoint, not only the request that met it.
    A request with a session travels over connections of its own and names the
    session in an ``x-session-id`` header.
    """

    def __init__(
        self,
        spec: EndpointSpec,
        *,
        secret: Secret | None,
        clock: Clock,
        rng: random.Random,
        transport: httpx.AsyncBaseTransport,
        budget: Budget | None = None,
    ) -> None:
        self._spec = spec
        self._address = parse_address(spec.base_url)
        self._dialect = dialect_named(spec.dialect)
        self._secret = secret or Secret("", name="")
        self._clock = clock
        self._rng = rng
        self._budget = budget or Budget()
        self._paused_until = float("-inf")
        headers = {"accept-encoding": "identity", "user-agent": "ringtrue"}
        if secret is not None:
            headers["authorization"] = f"Bearer {secret.reveal()}"
        self._client = httpx.AsyncClient(
            transport=transport,
            headers=headers,
            # A cookie would tie all sessions to one replica behind a sticky balancer.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,  # a .netrc must not add a password of its own
            follow_redirects=False,  # a redirect would carry the key elsewhere
            timeout=httpx.Timeout(None, connect=spec.limits.connect_timeout),
        )

    @property
    def spec(self) -> EndpointSpec:
        """The endpoint's description."""
        return self._spec

    async def send(self, request: Request) -> Exchange:
        """Send one request, retries included, and return what happened; see ``Endpoint.send``."""
        path = path_of(request)
        place = Place(self._spec, self._address.shown(path))
        body = orjson.dumps(self._dialect.body(request, self._spec.model))
        at, scheduled = self._clock.now(), self._clock.monotonic()
        outcome = Outcome(place.failure(FailureKind.BUDGET, "not sent", party=Party.CALLER))
        attempts: list[Attempt] = []
        while True:
            await self._wait_out_pause()
            reserved = self._budget.reserve(self._spec, request)
            if reserved is None:
                outcome = outcome.noting("The budget of this run is spent: raise it or ask less")
                break
            received = await self._receive("POST", path, body, place, request.session)
            outcome = read_outcome(received, request, place, now=self._clock.now().timestamp())
            self._budget.settle(self._spec, reserved, outcome.answer.usage)
            pause = self._pause_after(outcome.failure, len(attempts) + 1)
            attempts.append(Attempt(len(attempts) + 1, received.sent, outcome.failure, pause or 0.0))
            if pause is None:
                outcome = outcome.noting(self._why_given_up(attempts))
                break
            await self._clock.sleep(pause)
        return outcome.exchange(request, self._spec, at=at, scheduled=scheduled, attempts=tuple(attempts))

    async def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        """Call a plain JSON route, one try; see ``Endpoint.call``."""
        place = Place(self._spec, self._address.shown(path))
        await self._wait_out_pause()
        received = await self._receive(
            method, path, None if body is None else orjson.dumps(body), place, None
        )
        if received.failure is not None or received.status is None:
            return Reply(received.status, None, received.headers, received.failure)
        value, malformed = parse_json(received.body)
        if 200 <= received.status < 300:
            failure = malformed and place.failure(malformed.kind, malformed.message, status=received.status)
        else:
            now = self._clock.now().timestamp()
            failure = failure_of_status(received.status, received.headers, received.body, place, now=now)
        return Reply(received.status, value, received.headers, failure)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _receive(
        self, method: str, path: str, body: bytes | None, place: Place, session: str | None
    ) -> Received:
        """One attempt: send, and read to the end or to what broke it. The secret is masked."""
        limits = self._spec.limits
        time = asyncio.get_running_loop().time
        give_up = time() + limits.total_timeout
        request = self._build(method, path, body, session)
        received = Received(sent=self._clock.monotonic())
        try:
            # Connecting has a limit of its own, which the transport keeps.
            first_byte_due = time() + limits.connect_timeout + limits.first_byte_timeout
            async with asyncio.timeout_at(min(give_up, first_byte_due)) as deadline:
                response = await self._client.send(request, stream=True)
                async with aclosing(response):
                    received.status = response.status_code
                    received.headers = dict(response.headers)
                    size = 0
                    async for data in _chunks(response):
                        received.chunks.append(WireChunk(self._clock.monotonic(), data))
                        deadline.reschedule(min(give_up, time() + limits.read_timeout))
                        size += len(data)
                        if size > _MOST_BYTES:
                            received.failure = place.failure(
                                FailureKind.BAD_SHAPE, f"the body is longer than {_MOST_BYTES >> 20} MiB"
                            )
                            break
        except TimeoutError:
            total = time() >= give_up
            received.failure = failure_of_silence(place, in_body=bool(received.chunks), total=total)
        except httpx.HTTPError as error:
            received.failure = failure_of_exception(error, place, in_body=received.status is not None)
        received.end = self._clock.monotonic()
        return received.masked(self._secret)

    def _build(self, method: str, path: str, body: bytes | None, session: str | None) -> httpx.Request:
        headers = {} if body is None else {"content-type": "application/json"}
        if session is not None:
            headers["x-session-id"] = session
        return self._client.build_request(
            method, self._address.url(path), content=body, headers=headers, extensions={SESSION: session}
        )

    def _pause_after(self, failure: Failure | None, attempt: int) -> float | None:
        """Seconds until the next attempt, ``None`` for none. Being told to slow down holds for everybody."""
        if failure is None:
            return None
        limits = self._spec.limits
        pause = pause_before_retry(failure, attempt, limits, self._rng)
        if failure.kind is FailureKind.RATE_LIMITED:
            wait = pause if pause is not None else min(failure.retry_after or 0.0, limits.max_retry_wait)
            self._paused_until = max(self._paused_until, self._clock.monotonic() + wait)
        return pause

    async def _wait_out_pause(self) -> None:
        while (left := self._paused_until - self._clock.monotonic()) > 0:
            await self._clock.sleep(left)

    def _why_given_up(self, attempts: list[Attempt]) -> str:
        failure, limits = attempts[-1].failure, self._spec.limits
        asked = failure.retry_after if failure else None
        if asked is not None and asked > limits.max_retry_wait:
            return f"Gave up: that is longer than limits.max_retry_wait = {limits.max_retry_wait:g} s"
        return f"Gave up after {len(attempts)} attempts" if len(attempts) > 1 else ""


def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as the socket delivers it; decoded only where a server compresses what it was asked not to."""
    plain = response.headers.get("content-encoding", "identity") == "identity"
    return response.aiter_raw() if plain else response.aiter_bytes()


def _tls_context(spec: EndpointSpec) -> ssl.SSLContext | None:
    """What to trust: the bundled authorities, or those of SSL_CERT_FILE; ``None`` where there is no TLS."""
    return (
        httpx.create_ssl_context(verify=spec.verify_tls)
        if spec.base_url.lower().startswith("https:")
        else None
    )
