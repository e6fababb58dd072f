"""One rule a flaw, each a generator over a template's tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from jinja2 import nodes

from ringtrue.records import Severity
from tokenizer_checks.templates.flaw import Flaw, Rule
from tokenizer_checks.templates.reading import Reading, loses_last_newline

_GIVEN = frozenset(
    {"messages", "tools", "documents", "add_generation_prompt", "raise_exception", "strftime_now"}
    | {
        "namespace",
        "dict",
        "range",
        "lipsum",
        "cycler",
        "joiner",
        "loop",
        "caller",
        "self",
        "varargs",
        "kwargs",
    }
    | {f"{kind}_token" for kind in ("bos", "eos", "unk", "pad", "sep", "cls", "mask", "image")}
)
_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DATE = re.compile(rf"\b\d{{1,2}} (?:{_MONTHS})[a-z]* \d{{4}}\b|\b\d{{4}}-\d{{2}}-\d{{2}}\b")
_ESCAPES = frozenset({"e", "escape", "forceescape", "urlencode", "xmlattr"})
_GUARDS = frozenset({"defined", "undefined", "none"})


def tools_ignored(reading: Reading) -> Iterator[Flaw]:
    """Yield if no part of the template reads ``tools``."""
    if "tools" not in reading.undeclared:
        yield Flaw(
            Rule.TOOLS_IGNORED,
            Severity.WARN,
            reading.message_loop(),
            "the template never reads tools: tools that a caller offers don't reach the model",
        )


def generation_prompt(reading: Reading) -> Iterator[Flaw]:
    """Yield if the answer's header is never written, or always."""
    if "add_generation_prompt" in reading.undeclared:
        return
    tail = _tail(reading.tree)
    if tail is None:
        message = (
            "the template never reads add_generation_prompt and writes nothing behind the messages: "
            "right only if the end of a user's turn is the model's cue"
        )
        yield Flaw(Rule.GENERATION_PROMPT_MISSING, Severity.WARN, reading.message_loop(), message)
    else:
        message = "the template never reads add_generation_prompt and writes a header for the answer always"
        yield Flaw(Rule.GENERATION_PROMPT_ALWAYS, Severity.INFO, tail, message)


def _tail(tree: nodes.Template) -> int | None:
    """Return the line of the text that stands behind the last loop, if any does."""
    line = None
    for node in tree.body:
        if isinstance(node, nodes.For):
            line = None
        elif isinstance(node, nodes.Output) and _writes(node):
            line = node.lineno
    return line


def _writes(output: nodes.Output) -> bool:
    return any(not isinstance(part, nodes.TemplateData) or part.data.strip() for part in output.nodes)


def dates(reading: Reading) -> Iterator[Flaw]:
    """Yield every use of the clock, and every date that stands in the template."""
    for call in reading.tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == "strftime_now":
            message = "the template writes the day: its token IDs change at the server's midnight"
            yield Flaw(Rule.DATE_CLOCK, Severity.INFO, call.lineno, message)
    for text, line in reading.literals():
        for match in _DATE.finditer(text):
            message = f"the template holds the date {match.group()}"
            yield Flaw(Rule.DATE_FIXED, Severity.INFO, line + text.count("\n", 0, match.start()), message)


def undefined_variables(reading: Reading) -> Iterator[Flaw]:
    """Yield every variable that nobody passes and that the template uses as if somebody did."""
    stored = {node.name for node in reading.tree.find_all(nodes.Name) if node.ctx == "store"}
    for name in sorted(reading.undeclared - _GIVEN - stored - _guarded(reading.tree)):
        first = next(reading.uses(name), None)
        if first is not None:
            message = f"{name!r} is not passed by default, and the template does not ask whether it is there"
            yield Flaw(Rule.VARIABLE_UNDEFINED, Severity.WARN, first.lineno, message)


def _guarded(tree: nodes.Template) -> set[str]:
    """Return the names of which the template asks whether they are there, or for which it has a default."""
    tests = (test.node for test in tree.find_all(nodes.Test) if test.name in _GUARDS)
    filters = (f.node for f in tree.find_all(nodes.Filter) if f.name in ("default", "d"))
    asked = (*tests, *filters, *_conditions(tree))
    return {node.name for node in asked if isinstance(node, nodes.Name)}


def _conditions(tree: nodes.Template) -> list[nodes.Node]:
    """Return what is asked only whether it is true: undefined counts as false there."""
    asked: list[nodes.Node] = [node.test for node in tree.find_all(nodes.If)]
    asked += [node.test for node in tree.find_all(nodes.CondExpr)]
    found = []
    while asked:
        node = asked.pop()
        found.append(node)
        if isinstance(node, (nodes.And, nodes.Or)):
            asked += [node.left, node.right]
        elif isinstance(node, nodes.Not):
            asked.append(node.node)
    return found


def json_filters(reading: Reading) -> Iterator[Flaw]:
    """Yield every use of ``tojson`` that writes otherwise than a model is usually trained on."""
    for node in reading.tree.find_all(nodes.Filter):
        if node.name in _ESCAPES and _holds_json(node.node):
            message = "JSON is escaped for HTML: quotes, angle brackets and ampersands become other tokens"
            yield Flaw(Rule.TOJSON_ESCAPED, Severity.WARN, node.lineno, message)
        if node.name == "tojson":
            yield from _arguments(node)


def _holds_json(node: nodes.Node | None) -> bool:
    while isinstance(node, nodes.Filter):
        if node.name == "tojson":
            return True
        node = node.node
    return False


def _arguments(node: nodes.Filter) -> Iterator[Flaw]:
    told = {pair.key for pair in node.kwargs if isinstance(pair.value, nodes.Const) and pair.value.value}
    if "sort_keys" in told:
        message = "tojson sorts the keys of what a caller sends"
        yield Flaw(Rule.TOJSON_SORTED, Severity.INFO, node.lineno, message)
    if "ensure_ascii" in told:
        message = "tojson escapes everything beyond ASCII"
        yield Flaw(Rule.TOJSON_ASCII, Severity.INFO, node.lineno, message)


def last_newline(reading: Reading) -> Iterator[Flaw]:
    """Yield if the template ends in a newline that engines drop."""
    if loses_last_newline(reading.source, "chat template"):
        line = reading.source.count("\n")
        message = "the newline that ends the template is dropped by default, so it never reaches the model"
        yield Flaw(Rule.NEWLINE_LOST, Severity.WARN, line, message)


RULES: tuple[Callable[[Reading], Iterator[Flaw]], ...] = (
    tools_ignored,
    generation_prompt,
    dates,
    undefined_variables,
    json_filters,
    last_newline,
)
