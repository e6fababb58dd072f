"""How true are the times of `HttpEndpoint` under load?

Poisson arrivals at a mock of known delay, which runs in a process of its own on
the loopback. Each answer is a stream: the first token after the delay, the rest
at even gaps, so that rate x duration requests are in flight: 500 in both
workloads. `probe` is what probes send, a short answer after a long delay;
`stream` has 4,000 events a second. Transports are compared in interleaved
blocks, each block in a fresh process.

    python benchmarks/probe_load.py                    # the tables, and benchmarks/results/probe_load.json
    python benchmarks/probe_load.py --workloads probe --transports ours --blocks 1

TTFT error is the measured time to the first token minus the mock's true delay,
which it reports with each answer (the delay asked for and its own lateness,
shown beside): from the *scheduled* arrival (what a user would feel) and from the
*sent* time. A run is void when it achieves less than 99 % of the asked rate, or
when the mock itself was late (p99 above 5 ms): then the machine was too busy.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from probes.clock import system_clock
from probes.http_endpoint import HttpEndpoint, connect
from probes.steady import steady_collector
from ringtrue.records import EndpointSpec, Exchange, Limits, Request, Sampling

RESULTS = Path(__file__).parent / "results" / "probe_load.json"
LEAST_ACHIEVED = 0.99
MOST_LATE = 5.0  # ms, the mock's own p99
# Delay of the first token (s), tokens, gap between them (s).
WORKLOADS = {"probe": (2.4, 2, 0.1), "stream": (0.5, 20, 0.1)}
REQUEST_BODY = ({"role": "user", "content": "x" * 512},)


@dataclass(frozen=True)
class Load:
    """What is asked of a transport. Times in seconds."""

    rate: float
    seconds: float
    delay: float
    tokens: int
    gap: float
    seed: int


def main() -> None:
    """Compare, or be one of the processes that a comparison starts."""
    options = _options()
    loads = [
        Load(options.rate, options.seconds, *WORKLOADS[name], options.seed)
        for name in options.workloads.split(",")
    ]
    if options.mock:
        asyncio.run(serve_mock(loads[0]))
    elif options.block:
        print(json.dumps(asyncio.run(run_block(options.block, options.port, loads[0]))))
    else:
        names = options.workloads.split(",")
        results = {
            name: compare(name, options.transports.split(","), options.blocks, load)
            for name, load in zip(names, loads, strict=True)
        }
        write(results)


def compare(workload: str, transports: list[str], blocks: int, load: Load) -> dict[str, Any]:
    """Run all blocks of one workload, print the table, return what was measured."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in transports}
    with subprocess.Popen(_command(workload, load, "--mock"), stdout=subprocess.PIPE, text=True) as mock:  # noqa: S603
        assert mock.stdout is not None
        port = mock.stdout.readline().strip()
        try:
            for _ in range(blocks):
                for name in transports:
                    command = _command(workload, load, "--block", name, "--port", port)
                    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
                    rows[name].append(json.loads(done.stdout))
        finally:
            mock.terminate()
    summary = {name: pooled(found) for name, found in rows.items()}
    Console(width=140).print(table(summary, load))
    return {"load": vars(load), "transports": summary}


def write(results: dict[str, dict[str, Any]]) -> None:
    """Keep the results beside the machine they were measured on."""
    RESULTS.parent.mkdir(exist_ok=True)
    machine = {
        "python": platform.python_version(),
        "httpx": httpx.__version__,
        "machine": platform.platform(),
    }
    RESULTS.write_text(json.dumps({"machine": machine, "workloads": results}, indent=1))


@dataclass(frozen=True)
class Timed:
    """One request: clock readings in seconds, ``first`` less the mock's lateness. ``None``: it failed."""

    due: float
    sent: float
    first: float | None
    late: float | None


async def run_block(transport: str, port: int, load: Load) -> dict[str, Any]:
    """Send one block of Poisson arrivals and measure it."""
    endpoint = TRANSPORTS[transport](f"http://127.0.0.1:{port}/v1")
    rng = np.random.default_rng(load.seed)
    gaps = rng.exponential(1.0 / load.rate, int(load.rate * load.seconds))
    clock = time.perf_counter
    in_flight = most_in_flight = 0

    async def ask(due: float, number: int) -> Timed:
        nonlocal in_flight, most_in_flight
        in_flight += 1
        most_in_flight = max(most_in_flight, in_flight)
        request = Request(f"r{number}", REQUEST_BODY, sampling=Sampling(max_tokens=load.tokens), stream=True)
        exchange = await endpoint.send(request)
        in_flight -= 1
        return timed(due, exchange)  # an exchange kept is work for the garbage collector

    tasks = []
    with steady_collector():
        cpu = time.process_time()
        for number, due in enumerate((clock() + 0.2 + np.cumsum(gaps)).tolist()):
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            tasks.append(asyncio.create_task(ask(due, number)))
        results = await asyncio.gather(*tasks)
        cpu = time.process_time() - cpu
    await endpoint.aclose()
    return measured(results, load) | {
        "most_in_flight": most_in_flight,
        "cpu_ms": 1e3 * cpu / len(results),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def timed(due: float, exchange: Exchange) -> Timed:
    """What is kept of an exchange."""
    times, late = exchange.timings, float(exchange.system_fingerprint or "nan")
    if exchange.error is not None or times.first_content is None:
        return Timed(due, times.sent or due, None, None)
    return Timed(due, times.sent or due, times.first_content - late, late)


def measured(results: list[Timed], load: Load) -> dict[str, Any]:
    """Errors of the times to the first token (milliseconds), and the rate achieved."""
    good = [(one, one.first, one.late) for one in results if one.first is not None and one.late is not None]
    return {
        "n": len(results),
        "failed": len(results) - len(good),
        "achieved": (results[-1].due - results[0].due) / (results[-1].sent - results[0].sent),
        "from_scheduled": [1e3 * (first - one.due - load.delay) for one, first, _ in good],
        "from_sent": [1e3 * (first - one.sent - load.delay) for one, first, _ in good],
        "mock": [1e3 * late for _, _, late in good],
    }


def pooled(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """The blocks of one transport in one line: percentiles over all requests, the worst of the rest."""
    summary: dict[str, Any] = {
        "n": sum(block["n"] for block in blocks),
        "failed": sum(block["failed"] for block in blocks),
        "achieved": min(block["achieved"] for block in blocks),
        "most_in_flight": max(block["most_in_flight"] for block in blocks),
        "cpu_ms": float(np.mean([block["cpu_ms"] for block in blocks])),
        "peak_rss_mib": max(block["peak_rss_mib"] for block in blocks),
    }
    for name in ("from_scheduled", "from_sent", "mock"):
        values = np.concatenate([block[name] for block in blocks])
        summary[name] = {"p50": float(np.median(values)), "p99": float(np.quantile(values, 0.99))}
    void = summary["achieved"] < LEAST_ACHIEVED or summary["failed"] > 0 or summary["mock"]["p99"] > MOST_LATE
    return summary | {"void": void}


def table(summary: dict[str, dict[str, Any]], load: Load) -> Table:
    """The printed form."""
    shown = Table(
        title=f"TTFT error in ms at {load.rate:g} requests/s, delay {load.delay * 1e3:g} ms, "
        f"{load.tokens} tokens every {load.gap * 1e3:g} ms"
    )
    for column in ("transport", "n", "achieved", "in flight", "scheduled p50 / p99", "sent p50 / p99"):
        shown.add_column(column)
    for column in ("mock late p50 / p99", "CPU ms/request", "peak RSS MiB"):
        shown.add_column(column)
    for name, row in summary.items():
        errors = [
            f"{row[key]['p50']:.2f} / {row[key]['p99']:.2f}"
            for key in ("from_scheduled", "from_sent", "mock")
        ]
        achieved = f"{row['achieved']:.1%}" + (" VOID" if row["void"] else "")
        shown.add_row(
            name,
            str(row["n"]),
            achieved,
            str(row["most_in_flight"]),
            *errors,
            f"{row['cpu_ms']:.2f}",
            f"{row['peak_rss_mib']:.0f}",
        )
    return shown


async def serve_mock(load: Load) -> None:
    """Print the port, then answer each request after exactly the delay, as exactly as a loop can."""
    server = await asyncio.get_running_loop().create_server(lambda: Mock(load), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    gc.freeze()
    await server.serve_forever()


class Mock(asyncio.Protocol):
    """One connection. It puts its own lateness into ``system_fingerprint`` (seconds)."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._loop = asyncio.get_running_loop()
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Plan the answer as soon as a request is whole."""
        now = self._loop.time()
        self._pending += data
        head, separator, body = self._pending.partition(b"\r\n\r\n")
        if not separator or len(body) < _content_length(head):
            return
        self._pending = b""
        self._loop.call_at(now + self._load.delay, self._token, 1, now + self._load.delay)

    def _token(self, number: int, due: float) -> None:
        late = f"{self._loop.time() - due:.6f}" if number == 1 else None
        finish = "length" if number == self._load.tokens else None
        choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": finish}
        event = json.dumps({"choices": [choice], "system_fingerprint": late}).encode()
        data = b"data: " + event + b"\n\n" + (b"data: [DONE]\n\n" if finish else b"")
        chunk = b"%x\r\n%s\r\n" % (len(data), data) + (b"0\r\n\r\n" if finish else b"")
        self._transport.write((HEAD if number == 1 else b"") + chunk)
        if not finish:
            self._loop.call_at(due + self._load.gap, self._token, number + 1, due + self._load.gap)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def _spec(url: str) -> EndpointSpec:
    return EndpointSpec("mock", url, "m", limits=Limits(max_in_flight=1000, max_attempts=1))


def _ours(url: str) -> HttpEndpoint:
    return connect(_spec(url), {})


def _with_transport(transport: httpx.AsyncBaseTransport, url: str) -> HttpEndpoint:
    rng = random.Random(0)  # noqa: S311
    return HttpEndpoint(_spec(url), secret=None, clock=system_clock(), rng=rng, transport=transport)


def _pool(url: str) -> HttpEndpoint:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=4.0)
    return _with_transport(httpx.AsyncHTTPTransport(limits=limits, trust_env=False), url)


def _aiohttp(url: str) -> HttpEndpoint:
    from httpx_aiohttp import AiohttpTransport  # noqa: PLC0415  optional: only this comparison needs it

    limits = httpx.Limits(max_connections=2000, max_keepalive_connections=None, keepalive_expiry=4.0)
    return _with_transport(AiohttpTransport(limits=limits), url)


TRANSPORTS: dict[str, Callable[[str], HttpEndpoint]] = {
    "ours": _ours,
    "httpx": _pool,
    "httpx-aiohttp": _aiohttp,
}


def _command(workload: str, load: Load, *options: str) -> list[str]:
    asked = [f"--{name}={getattr(load, name)}" for name in ("rate", "seconds", "seed")]
    return [sys.executable, __file__, "--workloads", workload, *asked, *options]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help=f"of: {', '.join(WORKLOADS)}")
    parser.add_argument("--transports", default="ours,httpx", help="of: ours, httpx, httpx-aiohttp")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mock", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--block", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
