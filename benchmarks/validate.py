"""How many tool calls can one core judge in a second?

Argument sets: JSON text against its tool's schema, by `Schemas` (compiled once
by content) and by a comparator that hands both to `jsonschema.validate`, which
checks and compiles the schema each time, as public verifiers do. Whole
exchanges: a line of the interchange format, read and judged by every rule.
Rounds of all of them are interleaved, on one core that the process is bound to;
rates are by CPU time, so that a busy machine does not count. Last, the command
`ringtrue validate` as a process on a file, by wall time, its start included.

    python benchmarks/validate.py               # about 2 minutes
    python benchmarks/validate.py --file 0      # without the command

Bounds: 100,000 argument sets a second of every payload, and 5,000 exchanges of
all payloads in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import orjson

from toolcall_validator.schemas import Schemas
from toolcall_validator.strict_json import parse_strict
from toolcall_validator.validate import Validator

RESULTS = Path(__file__).parent / "results" / "validate.json"
LEAST_SETS, LEAST_EXCHANGES = 100_000, 5_000  # a second
ROUNDS, SECONDS = 9, 0.4  # of each contender
CHUNKS = 40

FLAT = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "units": {"enum": ["metric", "imperial"]},
    },
    "required": ["place"],
    "additionalProperties": False,
}
NESTED = {
    "type": "object",
    "properties": {
        "order": {
            "type": "object",
            "properties": {
                "customer": {"$ref": "#/$defs/person"},
                "lines": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {
                            "article": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"},
                            "count": {"type": "integer", "exclusiveMinimum": 0},
                            "price": {"type": ["number", "null"]},
                            "options": {"anyOf": [{"type": "string"}, {"type": "array"}]},
                        },
                        "required": ["article", "count"],
                    },
                },
            },
            "required": ["customer", "lines"],
        },
    },
    "required": ["order"],
    "$defs": {
        "person": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "mail": {"type": "string", "format": "email"}},
            "required": ["name"],
        }
    },
}
ORDER = {
    "order": {
        "customer": {"name": "Ada Lovelace", "mail": "ada@example.org"},
        "lines": [
            {"article": f"AB-{1000 + n}", "count": n + 1, "price": 2.5 * n, "options": ["red", "small"]}
            for n in range(5)
        ],
    }
}
PAYLOADS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "flat": (FLAT, {"place": "Reykjav\u00edk", "days": 3, "units": "metric"}),
    "nested": (NESTED, ORDER),
}


@dataclass(frozen=True)
class Contender:
    """Some work, and how many of what it counts one run of it does."""

    work: Callable[[], object]
    count: int
    least: int | None = None  # a second


def request(schema: dict[str, Any], *, stream: bool) -> dict[str, Any]:
    """Return a request that offers the tool beside four others."""
    names = ("do_it", "search", "read_file", "send_mail", "plan")
    tools = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]
    asked = [
        {"role": "system", "content": "You are a careful assistant. Use the tools that you were given. " * 8},
        {"role": "user", "content": "Please do what has to be done for the customer of yesterday."},
    ]
    body = {"model": "a-model", "messages": asked, "tools": tools, "max_tokens": 1024, "stream": stream}
    return body | ({"stream_options": {"include_usage": True}} if stream else {})


def plain(schema: dict[str, Any], arguments: str) -> dict[str, Any]:
    """Return an exchange whose answer is one call."""
    function = {"name": "do_it", "arguments": arguments}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_9f3a", "type": "function", "function": function}],
    }
    usage = {"prompt_tokens": 311, "completion_tokens": 42, "total_tokens": 353}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    response = {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}
    return {"id": "plain", "request": request(schema, stream=False), "response": response}


def streamed(schema: dict[str, Any], arguments: str) -> dict[str, Any]:
    """Return the same call in ``CHUNKS`` chunks."""
    pieces = CHUNKS - 4  # beside the role, the opening, the finish and the usage
    cuts = [len(arguments) * n // pieces for n in range(pieces + 1)]
    opening = {"index": 0, "id": "call_9f3a", "type": "function"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas.append({"tool_calls": [opening | {"function": {"name": "do_it", "arguments": ""}}]})
    for start, end in pairwise(cuts):
        deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": arguments[start:end]}}]})
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "a-model"}
    chunks = [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    chunks.append(head | {"choices": [], "usage": {"prompt_tokens": 311, "completion_tokens": 42}})
    return {"id": "streamed", "request": request(schema, stream=True), "chunks": chunks, "done": True}


def lines() -> dict[str, bytes]:
    """Return a line of the interchange format for each payload, plain and streamed; all are valid."""
    found = {}
    for name, (schema, value) in PAYLOADS.items():
        text = json.dumps(value, ensure_ascii=False)
        found[f"{name}, plain"] = orjson.dumps(plain(schema, text))
        found[f"{name}, streamed in {CHUNKS} chunks"] = orjson.dumps(streamed(schema, text))
    return found


def contenders() -> dict[str, Contender]:
    """Return everything that is measured, ours and the comparator."""
    found: dict[str, Contender] = {}
    for name, (schema, value) in PAYLOADS.items():
        text = json.dumps(value, ensure_ascii=False)
        found[f"arguments, {name}"] = Contender(cached([(schema, text)]), 1000, LEAST_SETS)
        found[f"arguments, {name}: comparator"] = Contender(compiled_anew(schema, text), 20)
    sets = [(schema, json.dumps(value, ensure_ascii=False)) for schema, value in PAYLOADS.values()]
    found["arguments, both in turn"] = Contender(cached(sets), 1000, LEAST_SETS)
    every = lines()
    for name, line in every.items():
        found[f"exchange, {name}"] = Contender(judged([line]), 100)
    found["exchange, all four in turn"] = Contender(judged(list(every.values())), 100, LEAST_EXCHANGES)
    return found


def cached(turns: list[tuple[dict[str, Any], str]]) -> Callable[[], None]:
    """Return a thousand checks of argument sets in turn, each from its text."""
    schemas = Schemas()

    def work() -> None:
        for n in range(1000):
            schema, text = turns[n % len(turns)]
            parsed = parse_strict(text)
            assert parsed.flaw is None
            assert schemas.get(schema).accepts(parsed.value)

    return work


def compiled_anew(schema: dict[str, Any], text: str) -> Callable[[], None]:
    """Return twenty checks of one argument set as public verifiers do them."""

    def work() -> None:
        for _ in range(20):
            jsonschema.validate(json.loads(text), schema)

    return work


def judged(turns: list[bytes]) -> Callable[[], None]:
    """Return a hundred judgements of lines in turn, each from its bytes."""
    validator = Validator()

    def work() -> None:
        for n in range(100):
            assert validator.validate(orjson.loads(turns[n % len(turns)])) == ()

    return work


def rate(contender: Contender) -> float:
    """Return how many a second of CPU time one round reached."""
    done, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < SECONDS:
        contender.work()
        done += contender.count
    return done / spent


def command_rate(count: int) -> dict[str, float]:
    """Return what the command reaches on a file of so many exchanges, in a second of wall and CPU time."""
    kinds = list(lines().values())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exchanges.jsonl"
        path.write_bytes(b"".join(kinds[n % len(kinds)] + b"\n" for n in range(count)))
        start = "from ringtrue.cli import main; main()"
        command = [sys.executable, "-c", start, "validate", str(path), "--format", "json"]
        before, begin = os.times(), time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)  # noqa: S603
        wall, after = time.perf_counter() - begin, os.times()
    if done.returncode:
        raise SystemExit(f"ringtrue validate ended with {done.returncode}")
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    printed = done.stdout.count(b"\n")
    assert printed == count + 1, f"{printed} lines for {count} exchanges"
    return {"exchanges": count, "a_second_of_wall_time": count / wall, "a_second_of_cpu_time": count / spent}


def main() -> int:
    """Print the table, and return 1 where a bound does not hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--file", type=int, default=50_000, help="exchanges in the command's file; 0: none")
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    measured = contenders()
    for contender in measured.values():
        contender.work()  # compiled and imported before anything is timed
    rounds: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(ROUNDS):
        for name, contender in measured.items():
            rounds[name].append(rate(contender))
    rows = {
        name: {"median": statistics.median(rates), "least": min(rates), "most": max(rates)}
        for name, rates in rounds.items()
    }
    command = command_rate(options.file) if options.file else None
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"rounds": ROUNDS, "rates": rows, "command": command}, indent=1))
    print(f"| a second, one core, {ROUNDS} rounds | median | least | most | bound |")
    for name, row in rows.items():
        least = measured[name].least
        print(
            f"| {name} | {row['median']:,.0f} | {row['least']:,.0f} | {row['most']:,.0f} | {least or '-'} |"
        )
    if command is not None:
        print(
            "| ringtrue validate, a file of {:,.0f}: {:,.0f} by wall time, {:,.0f} by CPU time |".format(
                *command.values()
            )
        )
    failed = [name for name, row in rows.items() if row["median"] < (measured[name].least or 0)]
    for name in failed:
        print(f"below its bound: {name}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
