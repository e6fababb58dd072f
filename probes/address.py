"""Where an endpoint's routes are, and how to name them to a person."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ringtrue.errors import ConfigError

_VERSION = re.compile(r"/v\d+\Z")


@dataclass(frozen=True, slots=True)
class Address:
    """The roots of a server and of its API (usually ``root`` + ``/v1``), without final slash."""

    root: str
    api: str

    def url(self, path: str) -> str:
        """The URL of a route; ``/v1/...`` lies under the API's root, anything else under the server's."""
        return self.api + path.removeprefix("/v1") if path.startswith("/v1/") else self.root + path

    def shown(self, path: str) -> str:
        """Host and path, for messages: no scheme, user, password or query."""
        parts = urlsplit(self.url(path))
        return parts.netloc.rpartition("@")[2] + parts.path


def parse_address(base_url: str) -> Address:
    """Read a base URL, with or without its ``/v1``.

    Raises:
        ConfigError: it is no http(s) URL with a host, or it carries a password
            or a query, where keys would leak from.
    """
    where = "base_url"
    try:
        parts = urlsplit(base_url)
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        raise ConfigError("not a URL", where=where, remedy="Write it like https://host/v1") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_good:
        raise ConfigError(
            f"not an http or https URL with a host: {parts.scheme}://{parts.hostname or ''}{parts.path}",
            where=where,
            remedy="Write it like https://host/v1",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            "a base URL holds no user, password, query or fragment",
            where=where,
            remedy='Give the key as api_key = "env:NAME"',
        )
    path = parts.path.rstrip("/")
    server = f"{parts.scheme}://{parts.netloc}"
    if not path:
        return Address(server, f"{server}/v1")
    return Address(server + _VERSION.sub("", path), server + path)
