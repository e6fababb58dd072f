"""``dict`` and ``namespace`` as transformers gives them to templates: without a way out of the sandbox."""

from __future__ import annotations

from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.utils import Namespace


class SafeDict:
    """``dict`` without its attributes."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """Do what ``dict`` does."""
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """Do what ``dict.fromkeys`` does."""
        return dict.fromkeys(*args, **kwargs)


class SafeNamespace(Namespace):
    """A namespace that holds no name with an underscore before it."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # no name of ours may hide one of the template's
        attributes = dict(*args[1:], **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(args[0], attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace can't hold {name!r}")
