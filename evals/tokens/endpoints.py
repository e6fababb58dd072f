"""Which endpoint a command means: a URL with what is told of it, or one of the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from reference_engine.models.embedded import EMBEDDED_NAME
from ringtrue.config import DEFAULT_PATH, load_settings
from ringtrue.errors import UsageError
from ringtrue.records import EndpointSpec, Limits


@dataclass(frozen=True, slots=True)
class EndpointOrder:
    """What the command line says of an endpoint."""

    url: str | None = None
    model: str | None = None
    dialect: str = "auto"
    api_key: str | None = None
    verify_tls: bool = True
    endpoint: str | None = None
    config: Path = DEFAULT_PATH

    def spec(self) -> EndpointSpec:
        """Return the endpoint; without a model, and with the dialect ``auto``, where they are left open.

        Raises:
            UsageError: none is named, two are, or there is none of the name.
            ConfigError: the configuration can't be used.
        """
        if self.url is not None and self.endpoint is not None:
            raise UsageError("--url and --endpoint name two endpoints", remedy="Leave one out")
        if self.url is not None:
            return EndpointSpec(
                name=self.url,
                base_url=self.url,
                model=self.model or "",
                dialect=self.dialect,
                api_key=self.api_key,
                verify_tls=self.verify_tls,
                limits=Limits(max_attempts=2),
            )
        if self.endpoint is None:
            raise UsageError("names no endpoint", remedy="Add --url URL, or --endpoint NAME")
        known = {one.name: one for one in load_settings(self.config).endpoints}
        if self.endpoint not in known:
            close = get_close_matches(self.endpoint, known, n=1)
            remedy = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(known)}"
            raise UsageError(f"no endpoint is named {self.endpoint!r}", where="--endpoint", remedy=remedy)
        return known[self.endpoint].to_spec()

    def reference(self) -> str:
        """Return the model that is promised: the configuration's for its endpoints, else the embedded one.

        Raises:
            ConfigError: the configuration can't be used.
        """
        return EMBEDDED_NAME if self.endpoint is None else load_settings(self.config).reference.model
