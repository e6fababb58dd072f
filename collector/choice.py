"""Which endpoints a command means, and how it asks them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from ringtrue.config import Settings, settings_from
from ringtrue.errors import UsageError


def choose(settings: Settings, names: Sequence[str] | None, *, where: str = "--endpoint") -> Settings:
    """Return the settings with only the endpoints that are named, all if none is.

    ``where`` is what an error calls the place the names came from.

    Raises:
        UsageError: There is no endpoint of a name.
    """
    known = [endpoint.name for endpoint in settings.endpoints]
    for name in names or ():
        if name not in known:
            close = get_close_matches(name, known, n=1)
            remedy = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(known)}"
            raise UsageError(f"no endpoint is named {name!r}", where=where, remedy=remedy)
    chosen = tuple(endpoint for endpoint in settings.endpoints if not names or endpoint.name in names)
    return settings.model_copy(update={"endpoints": chosen})


def one_endpoint(url: str, model: str | None, *, dialect: str, api_key: str | None) -> Settings:
    """Return the default settings for one endpoint, named by its URL.

    Answers are left out: how long they are can only be held against earlier nights.

    Raises:
        UsageError: The model is not named.
        ConfigError: URL, dialect or key reference cannot be used.
    """
    if model is None:
        raise UsageError("needs the model's name as well", where="--url", remedy="Add --model NAME")
    endpoint = {"name": url, "base_url": url, "model": model, "dialect": dialect, "api_key": api_key}
    return settings_from({"endpoints": [endpoint], "parts": {"answers": 0}}, source="command line")


def with_seed(settings: Settings, seed: int) -> Settings:
    """Return the settings with another seed, and so with other prompts in another order."""
    return settings.model_copy(update={"probe": settings.probe.model_copy(update={"seed": seed})})
