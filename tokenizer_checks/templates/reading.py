"""A template's syntax tree, and what the rules of the lint ask of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jinja2 import TemplateSyntaxError, meta, nodes

from ringtrue.errors import ModelError
from tokenizer_checks.templates.bounds import Bounds
from tokenizer_checks.templates.chat import Dialect
from tokenizer_checks.templates.sandbox import TemplateEnvironment


@dataclass(frozen=True, slots=True)
class Reading:
    """A parsed template; ``undeclared`` are the names that it takes from outside."""

    source: str
    tree: nodes.Template
    undeclared: frozenset[str]

    def uses(self, name: str) -> Iterator[nodes.Name]:
        """Yield every place that reads a variable."""
        return (node for node in self.tree.find_all(nodes.Name) if node.name == name and node.ctx == "load")

    def literals(self) -> Iterator[tuple[str, int]]:
        """Yield every piece of text that the template holds, with its line."""
        for data in self.tree.find_all(nodes.TemplateData):
            yield data.data, data.lineno
        for const in self.tree.find_all(nodes.Const):
            if isinstance(const.value, str):
                yield const.value, const.lineno

    def message_loop(self) -> int:
        """Return the line of the first loop; 1 if there is none."""
        loop = self.tree.find(nodes.For)
        return 1 if loop is None else loop.lineno


def read(source: str, name: str) -> Reading:
    """Parse a template.

    Raises:
        ModelError: it can't be parsed; the line is named.
    """
    tree = _parsed(source, name, Dialect())
    return Reading(source, tree, frozenset(meta.find_undeclared_variables(tree)))


def loses_last_newline(source: str, name: str) -> bool:
    """Whether the source ends in a newline that the engine drops by its default and nothing else would."""
    kept = _parsed(source, name, Dialect(keep_trailing_newline=True))
    lost = _parsed(source, name, Dialect())
    return _written(kept) != _written(lost)


def _written(tree: nodes.Template) -> str:
    return "".join(node.data for node in tree.find_all(nodes.TemplateData))


def _parsed(source: str, name: str, dialect: Dialect) -> nodes.Template:
    try:
        return TemplateEnvironment(dialect, Bounds()).parse(source)
    except TemplateSyntaxError as error:
        raise ModelError(
            f"the template can't be parsed: {error.message}",
            where=f"{name}, line {error.lineno}",
            remedy="Compare it with the model's published template",
        ) from error
    except RecursionError as error:
        raise ModelError("the template is nested too deeply to be parsed", where=name) from error
