"""What is wrong with a configuration, in the words of its file and keys.

No problem ever quotes a value: a secret may have been put in the wrong place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError


@dataclass(frozen=True, slots=True)
class Problem:
    """One refused key: where it stands, and why it was refused."""

    where: str
    message: str


def validation_problems(
    error: ValidationError, model: type[BaseModel], *, source: str, environ: Mapping[str, str]
) -> list[Problem]:
    """Return one problem for each key that pydantic refused, unknown keys first.

    An unknown key is often why another one is missing.
    """
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return [
        Problem(_place(item["loc"], source, environ), _message(item["type"], item["msg"], item["loc"], model))
        for item in sorted(details, key=lambda item: item["type"] != "extra_forbidden")
    ]


def unknown_variables(model: type[BaseModel], environ: Mapping[str, str]) -> list[Problem]:
    """Return a problem for each ``RINGTRUE_SECTION__KEY`` whose section does not exist.

    pydantic-settings passes over them, and a misspelt override that does
    nothing is worse than an error. Variables without two underscores may be
    anybody's, for example a key named ``RINGTRUE_KEY``.
    """
    sections = {name.upper() for name in model.model_fields}
    return [
        Problem(name, f"unknown section{_suggest(section, sections)}")
        for name in sorted(environ)
        if name.startswith("RINGTRUE_") and "__" in name
        if (section := name.removeprefix("RINGTRUE_").split("__")[0]) not in sections
    ]


def _place(location: tuple[int | str, ...], source: str, environ: Mapping[str, str]) -> str:
    """Return the variable the key came from, else the source and the key."""
    keys = [str(part).upper() for part in location if isinstance(part, str)]
    for depth in range(len(keys), 0, -1):
        variable = "RINGTRUE_" + "__".join(keys[:depth])
        if variable in environ:
            return variable
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    return f"{source}: {path}" if path else source


def _message(kind: str, text: str, location: tuple[int | str, ...], model: type[BaseModel]) -> str:
    if kind == "extra_forbidden":
        return f"unknown key{_suggest(str(location[-1]), _siblings(location, model))}"
    if kind == "missing":
        return "is missing"
    return text.removeprefix("Value error, ").removeprefix("Input ")


def _suggest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f", did you mean {close[0]}?" if close else f"; known are {', '.join(sorted(known))}"


def _siblings(location: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """Return the keys that are known where ``location`` stands."""
    for part in location[:-1]:
        if isinstance(part, str):
            model = _section(model.model_fields[part].annotation)
    return list(model.model_fields)


def _section(annotation: Any) -> type[BaseModel]:
    """Return the model inside ``Model`` or ``tuple[Model, ...]``."""
    inner = (annotation, *get_args(annotation))
    return next(kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel))
