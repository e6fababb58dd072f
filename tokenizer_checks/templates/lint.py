"""Reads a chat template for faults, before any server renders it."""

from __future__ import annotations

from itertools import chain

from ringtrue.errors import ModelError
from ringtrue.records import Severity
from tokenizer_checks.templates.bounds import Bounds
from tokenizer_checks.templates.environment import Renderer
from tokenizer_checks.templates.flaw import Flaw, Rule
from tokenizer_checks.templates.reading import read
from tokenizer_checks.templates.rules import RULES
from tokenizer_checks.templates.trial import line_of, try_bounds, try_system, try_tools

_BOUNDS = Bounds(steps=20_000, characters=1_000_000)  # two messages and a tool need far less


def lint(source: str, name: str = "chat template") -> tuple[Flaw, ...]:
    """Return what is to be said of a template, by line.

    Most rules read the syntax tree. Whether a system message and tools are
    written at all is tried on two small chats, within small
    bounds; a template that refuses both chats is not judged by them.

    Raises:
        ModelError: the template can't be parsed; the line is named.
    """
    reading = read(source, name)
    renderer = Renderer(_BOUNDS)
    trials = (try_bounds, try_system, try_tools)
    found = chain(*(rule(reading) for rule in RULES), *(trial(reading, renderer) for trial in trials))
    return tuple(sorted(found, key=lambda flaw: (flaw.line, flaw.rule)))


def flaws(source: str, name: str = "chat template") -> tuple[Flaw, ...]:
    """Return what `lint` does; a template that can't be parsed is one flaw, at its line."""
    try:
        return lint(source, name)
    except ModelError as error:
        return (Flaw(Rule.TEMPLATE_BROKEN, Severity.FAIL, line_of(error) or 1, error.message),)
