"""How long can a schema made to hang keep the validator?

Each hostile schema of the tests with its value, three times from nothing, the
least CPU time of the three: to compile and check (`schema`), to put the reason
into words (`explained`), and a whole exchange with the value as arguments
(`exchange`). The bound, 100 ms on one core, holds for the first two, and for
an exchange of up to 100 KB; reading a longer one takes time by its length.

    python benchmarks/hostile_schemas.py      # some 10 seconds
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.unit.toolcall_validator.exchanges import call, plain, tool
from tests.unit.toolcall_validator.hostile import everything, written
from toolcall_validator.schemas import Schema, Schemas, TooCostlyError
from toolcall_validator.validate import Validator

RESULTS = Path(__file__).parent / "results" / "hostile_schemas.json"
BOUND, ROUNDS, SHORT = 0.1, 3, 100_000


def least(work: Callable[[], object]) -> float:
    """Return the least CPU time of some rounds, in seconds."""
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def checked(schema: Any, value: Any) -> Schema:
    """Compile a schema and ask it everything about a value."""
    compiled = Schemas().get(schema)
    with suppress(TooCostlyError):
        if not compiled.broken and not compiled.accepts(value):
            list(compiled.violations(value))
    return compiled


def explained(compiled: Schema, value: Any) -> None:
    """Put into words what a value does not meet."""
    with suppress(TooCostlyError):
        if not compiled.broken:
            compiled.explain(value)


def main() -> int:
    """Print the table, and return 1 where the bound does not hold."""
    jsonschema.Draft202012Validator({"type": "object"}).is_valid({})  # imported before anything is timed
    Validator().validate(plain(call()))
    rows: dict[str, dict[str, Any]] = {}
    for case in everything():
        schema, value = case.make()
        arguments = written(value)
        exchange = plain(call(arguments), asked={"tools": [tool(parameters=schema)]})
        compiled = checked(schema, value)
        rows[case.id] = {
            "outcome": case.outcome,
            "bytes": len(arguments),
            "schema": least(lambda s=schema, v=value: checked(s, v)),
            "explained": least(lambda c=compiled, v=value: explained(c, v)),
            "exchange": least(lambda e=exchange: Validator().validate(e)),
        }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"bound_s": BOUND, "cases": rows}, indent=1))
    slow = [name for name, row in rows.items() if over(row)]
    print("| CPU time, ms | outcome | bytes of arguments | schema | explained | exchange |")
    for name, row in rows.items():
        times = " | ".join(f"{1e3 * row[key]:.1f}" for key in ("schema", "explained", "exchange"))
        print(f"| {name} | {row['outcome']} | {row['bytes']:,} | {times} |{' over' if name in slow else ''}")
    worst = max(max(row["schema"], row["explained"]) for row in rows.values())
    print(f"{len(rows)} cases, the slowest {1e3 * worst:.1f} ms; {len(slow)} over {1e3 * BOUND:.0f} ms")
    return int(bool(slow))


def over(row: dict[str, Any]) -> bool:
    """Tell whether a case takes longer than it may."""
    return max(row["schema"], row["explained"]) > BOUND or (row["bytes"] <= SHORT and row["exchange"] > BOUND)


if __name__ == "__main__":
    sys.exit(main())
