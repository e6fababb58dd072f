"""What the caller got wrong: no fault of the answer."""

from __future__ import annotations

from collections.abc import Iterator

from toolcall_validator.case import Case
from toolcall_validator.fault import Fault, fault


def broken_schema(case: Case) -> Iterator[Fault]:
    """A schema of the request that does not compile, or would cost too much: what it asks is not scored."""
    for tool in case.asked.tools.values():
        if tool.parameters not in (None, {}):
            schema = case.schemas.get(tool.parameters)
            if schema.broken:
                yield fault(
                    "request.broken_schema", dialect=schema.dialect, detail=f"{tool.name}: {schema.broken}"
                )
    if isinstance(case.asked.structure, dict):
        schema = case.schemas.get(case.asked.structure)
        if schema.broken:
            yield fault(
                "request.broken_schema", dialect=schema.dialect, detail=f"response_format: {schema.broken}"
            )
