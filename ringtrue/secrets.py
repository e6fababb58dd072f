"""API keys: read from the environment by name, and kept out of everything that is shown or stored."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from ringtrue.errors import ConfigError, SecretError

_SHORTEST_MASKED = 8  # "EMPTY" or "none", the keys of open servers, would blank ordinary words


class Secret:
    """A value that shows itself only to ``reveal``.

    ``repr``, ``str`` and formatting give ``Secret(env:NAME)``. Two secrets are
    never equal by value and cannot be pickled.
    """

    __slots__ = ("_spelled", "_value", "name")

    def __init__(self, value: str, *, name: str) -> None:
        self._value = value
        self.name = name
        spelled = "".join(_spellings(character) for character in value).encode()
        self._spelled = re.compile(spelled) if len(value) >= _SHORTEST_MASKED else None

    def reveal(self) -> str:
        """Return the value, for the request header that needs it and nothing else."""
        return self._value

    def mask(self, data: bytes) -> bytes:
        """Return ``data`` with every spelling of the value overwritten by ``*``, its length unchanged.

        Each character may be written as itself or as JSON, a URL or HTML escapes it.
        Values under 8 characters are placeholders of open servers and stay.
        """
        return data if self._spelled is None else self._spelled.sub(lambda found: b"*" * len(found[0]), data)

    def mask_text(self, text: str) -> str:
        """Return ``text`` masked like ``mask``."""
        return self.mask(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def __repr__(self) -> str:
        return f"Secret(env:{self.name})"

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not pickled")


def _spellings(character: str) -> str:
    """Return a pattern for one character: servers differ in which ones they escape, and how."""
    backslash = r"\\?" if character in '"\\/' else ""
    code, entity = f"{ord(character):02x}", re.escape(html.escape(character))
    return rf"(?:{backslash}{re.escape(character)}|{entity}|\\u00(?i:{code})|%(?i:{code}))"


def resolve_secret(reference: str | None, env: Mapping[str, str]) -> Secret | None:
    """Return the secret that an ``env:NAME`` reference names, ``None`` for no reference.

    Raises:
        ConfigError: the reference is not of that form. It may then be a key
            itself, so the message does not repeat it.
        SecretError: the variable is missing or empty.
    """
    if reference is None:
        return None
    scheme, _, name = reference.partition(":")
    if scheme != "env" or not name:
        raise ConfigError(
            "an API key must be a reference, not the key itself",
            where="api_key",
            remedy='Put the key into an environment variable and write api_key = "env:NAME"',
        )
    # A key pasted from a file often brings its newline, which no header may hold.
    value = env.get(name, "").strip()
    if not value:
        raise SecretError(
            f"the environment variable {name} is not set or empty",
            where="api_key",
            remedy=f"Set it (export {name}=...) or remove api_key",
        )
    if not all("!" <= character <= "~" for character in value):
        raise SecretError(
            f"the value of {name} has characters that no HTTP header may carry",
            where="api_key",
            remedy="Set it again: printable ASCII without spaces",
        )
    return Secret(value, name=name)
