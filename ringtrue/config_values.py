"""The values of the configuration that need more than a type: pydantic checks them by these."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field


def _check_store_url(url: str) -> str:
    scheme = urlsplit(url).scheme
    if scheme not in {"sqlite", "postgresql", "postgresql+psycopg"}:
        msg = "not a store URL; write sqlite:///FILE or postgresql://HOST/DATABASE"
        raise ValueError(msg)
    if scheme == "sqlite" and (not url.startswith("sqlite:///") or url[10:] in {"", ":memory:"}):
        msg = "names no file; a store outlives the run, write sqlite:///FILE"
        raise ValueError(msg)
    return url


def _check_base_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in {"http", "https"} or not host:
        msg = "not a URL; write http://HOST[:PORT]/v1 or https://HOST/v1"
        raise ValueError(msg)
    if parts.username or parts.password or parts.query or parts.fragment:
        msg = "holds more than scheme, host and path; a key belongs in api_key"
        raise ValueError(msg)
    return url.rstrip("/")


def _check_key_reference(reference: str) -> str:
    if not reference.startswith("env:") or not reference[4:].isidentifier():
        msg = "not a reference; put the key in a variable and write env:NAME here"
        raise ValueError(msg)
    return reference


def _check_buckets(buckets: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    lengths = [length for length, _ in buckets]
    if any(length < 1 or count < 1 for length, count in buckets):
        msg = "each bucket is [length in tokens, number of prompts], both at least 1"
        raise ValueError(msg)
    if lengths != sorted(set(lengths)):
        msg = "the lengths must increase from bucket to bucket"
        raise ValueError(msg)
    return buckets


def _check_unique(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) != len(values):
        msg = "a value is listed twice"
        raise ValueError(msg)
    return values


StoreUrl = Annotated[str, AfterValidator(_check_store_url), Field(repr=False)]
"""An SQLite file or a PostgreSQL database. It may hold a password, so no repr shows it."""

BaseUrl = Annotated[str, AfterValidator(_check_base_url)]
"""Scheme, host, perhaps port and path of an API, without a slash at its end."""

KeyReference = Annotated[str, AfterValidator(_check_key_reference)]
"""``env:NAME``, never a key."""

Buckets = Annotated[tuple[tuple[int, int], ...], Field(min_length=1), AfterValidator(_check_buckets)]
"""Pairs (length in tokens, number of prompts), the lengths increasing."""

Languages = Annotated[
    tuple[Literal["english", "code", "json", "cjk"], ...],
    Field(min_length=1),
    AfterValidator(_check_unique),
]
"""The kinds of text that prompts are cut from, each once."""

Name = Annotated[str, Field(min_length=1)]
"""A text that is not empty."""

Models = Annotated[tuple[Name, ...], AfterValidator(_check_unique)]
"""Names of models, each once."""

Count = Annotated[int, Field(ge=1)]
"""A whole number from 1."""

CountOrNone = Annotated[int, Field(ge=0)]
"""A whole number from 0, where 0 stands for none."""

Positive = Annotated[float, Field(gt=0)]
"""A number above 0."""
