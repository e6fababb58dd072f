"""Writes a meter into a parsed template: a count at the head of every block, a check at every joint."""

from __future__ import annotations

from typing import Any

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

STEP, JOINED = "metered_step", "metered_join"  # methods of the environment that renders
_BLOCKS = ("body", "else_")


def metered(template: nodes.Template) -> nodes.Template:
    """Return the same tree with counts in it; what it renders is unchanged.

    Every list of statements under a loop, branch, macro or call begins with a
    call of ``STEP`` that tells how much text stands in it literally; ``~``
    becomes a call of ``JOINED``.
    """
    changed: nodes.Template = _Metering().visit(template)
    changed.set_environment(template.environment)  # type: ignore[arg-type]  # a parsed tree has one
    return changed


class _Metering(NodeTransformer):
    """Goes through the tree bottom up."""

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        super().generic_visit(node, *args, **kwargs)
        if isinstance(node, (nodes.Template, nodes.Output)):
            return node
        for field in _BLOCKS:
            body = getattr(node, field, None)
            if isinstance(body, list) and (body or field == "body"):
                body.insert(0, _step(body, node.lineno))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802  # named by the visitor's protocol
        self.generic_visit(node)
        call = _call(JOINED, node.nodes)
        return call.set_lineno(node.lineno)


def _step(body: list[nodes.Node], line: int) -> nodes.Node:
    written = sum(
        len(part.data)
        for node in body
        if isinstance(node, nodes.Output)
        for part in node.nodes
        if isinstance(part, nodes.TemplateData)
    )
    return nodes.ExprStmt(_call(STEP, [nodes.Const(written)])).set_lineno(line)


def _call(method: str, arguments: list[nodes.Expr]) -> nodes.Call:
    return nodes.Call(
        nodes.EnvironmentAttribute(method), [nodes.ContextReference(), *arguments], [], None, None
    )
