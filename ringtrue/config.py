"""One ``ringtrue.toml``, overridden by ``RINGTRUE_*`` variables, read into frozen settings.

A variable names its key with two underscores between levels:
``RINGTRUE_PROBE__TOP_K=5`` sets ``top_k`` of ``[probe]``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from ringtrue.config_problems import Problem, unknown_variables, validation_problems
from ringtrue.config_values import (
    BaseUrl,
    Buckets,
    Count,
    CountOrNone,
    KeyReference,
    Languages,
    Models,
    Name,
    Positive,
    StoreUrl,
)
from ringtrue.errors import ConfigError
from ringtrue.records import EndpointSpec, Limits, Role

DEFAULT_PATH = Path("ringtrue.toml")

EXAMPLE = """\
[[endpoints]]
name = "acme"
base_url = "https://api.example.com/v1"
model = "smollm2-135m"
api_key = "env:ACME_API_KEY"
"""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class StoreSettings(_Section):
    """Where results are kept: an SQLite file, its path relative to the working folder, or PostgreSQL."""

    url: StoreUrl = "sqlite:///ringtrue.db"


class ReferenceSettings(_Section):
    """The model that holds the truth, and the precision an honest server may compute in.

    ``others`` are the registered models that an endpoint may serve instead:
    where one of them explains the answers better, the cause is ``identity``.
    ``tool_format`` is the raw format in which the model writes calls (hermes,
    kimi, ...), told by its template when it is left out.
    """

    model: Name = "smollm2-135m"
    others: Models = ()
    floor_dtype: Literal["bf16", "fp16", "fp32"] = "bf16"
    device: Name = "auto"
    tool_format: Name | None = None


class ProbeSettings(_Section):
    """What is asked. ``buckets`` are pairs (length in tokens, number of prompts).

    Where a length has fewer than four prompts a night, it has ``turns`` sets of
    them, and each night asks another; 1 asks the same every night.
    """

    top_k: Count = 20
    buckets: Buckets = ((32, 64), (128, 24), (512, 16), (2048, 4))
    languages: Languages = ("english", "code", "json", "cjk")
    seed: Annotated[int, Field(ge=0)] = 0
    turns: Count = 11
    stream: bool = False


class PartSettings(_Section):
    """What is asked beside the context curve, at most, a night and endpoint; 0 leaves a part out.

    ``prompts`` chats whose token IDs are held against the model's own and those
    of earlier nights; ``sampled`` one-token answers at temperature 1; ``sessions`` new sessions of
    two short prompts; ``prefix_cache`` prompts asked cold and warm; ``answers``
    questions answered with at most ``answer_tokens``. ``greedy`` prompts
    continued by ``greedy_tokens``, and ``border`` prompts close to a tie, are
    asked only of endpoints without usable logprobs. ``toolcalls`` requests with
    tools, each plain and streamed and answered with at most ``toolcall_tokens``,
    of our own suite and of ``toolcall_suite``, a JSONL file of whole chat
    requests (relative to the working folder). Where these leave the choice the
    reference answers too, twice, with ``toolcall_reference_tokens``: a few
    seconds a request on a CPU, once a night for all endpoints.
    """

    prompts: CountOrNone = 18
    sampled: CountOrNone = 1200
    sessions: CountOrNone = 125
    prefix_cache: CountOrNone = 4
    greedy: CountOrNone = 200
    greedy_tokens: Count = 50
    border: CountOrNone = 30
    answers: CountOrNone = 60
    answer_tokens: Count = 256
    toolcalls: CountOrNone = 16
    toolcall_tokens: Count = 256
    toolcall_reference_tokens: CountOrNone = 64
    toolcall_suite: Path | None = None


class BudgetSettings(_Section):
    """What one run may cost at most, all endpoints together; ``None`` is no limit."""

    max_requests: Count | None = None
    max_tokens: Count | None = None
    max_dollars: Positive | None = None


class AlarmSettings(_Section):
    """How often the series of nights may raise a false alarm in a year, all endpoints together."""

    false_alarms_per_year: Annotated[float, Field(gt=0, le=100)] = 1.0


class LimitSettings(_Section):
    """``records.Limits`` as a section of the file; times in seconds."""

    max_in_flight: Count = 4
    requests_per_second: Positive | None = None
    connect_timeout: Positive = 10.0
    first_byte_timeout: Positive = 120.0
    read_timeout: Positive = 60.0
    max_attempts: Count = 3
    max_retry_wait: Annotated[float, Field(ge=0)] = 60.0
    total_timeout: Positive = 900.0


class EndpointSettings(_Section):
    """``records.EndpointSpec`` as a section of the file."""

    name: Name
    base_url: BaseUrl
    model: Name
    dialect: Literal[
        "openai",
        "vllm",
        "sglang",
        "llama_cpp",
        "llama_cpp_python",
        "tgi",
        "fireworks",
        "together",
        "ollama",
    ] = "openai"
    role: Role = Role.PROVIDER
    context_length: Count | None = None
    region: str | None = None
    price_in: Annotated[float, Field(ge=0)] | None = None
    price_out: Annotated[float, Field(ge=0)] | None = None
    api_key: KeyReference | None = None
    verify_tls: bool = True
    limits: LimitSettings = LimitSettings()

    def to_spec(self) -> EndpointSpec:
        """Return the record the rest of ringtrue speaks."""
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "limits"}
        return EndpointSpec(**fields, limits=Limits(**self.limits.model_dump()))


class Settings(BaseSettings):
    """All settings of one run. Frozen; a variable goes before the file, the file before the default."""

    model_config = SettingsConfigDict(
        env_prefix="RINGTRUE_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    store: StoreSettings = StoreSettings()
    reference: ReferenceSettings = ReferenceSettings()
    probe: ProbeSettings = ProbeSettings()
    parts: PartSettings = PartSettings()
    budget: BudgetSettings = BudgetSettings()
    alarms: AlarmSettings = AlarmSettings()
    endpoints: tuple[EndpointSettings, ...]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic-settings'
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources, the strongest first: the variables, then the file's content."""
        return env_settings, init_settings

    @model_validator(mode="after")
    def _endpoints_have_names_of_their_own(self) -> Self:
        if not self.endpoints:
            msg = "no endpoint is configured; add a section [[endpoints]]"
            raise ValueError(msg)
        names = [endpoint.name for endpoint in self.endpoints]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = f"two endpoints are named {twice[0]!r}; verdicts are kept by name"
            raise ValueError(msg)
        return self


def load_settings(path: Path = DEFAULT_PATH) -> Settings:
    """Return the settings of a file.

    Raises:
        ConfigError: The file is missing, is no TOML, or holds a key or value
            that is not accepted; ``where`` names the file and the key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            "no such file",
            where=str(path),
            remedy=f"Try `ringtrue demo`, which needs none, or start from\n\n{EXAMPLE}",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read ({type(error).__name__})", where=str(path)) from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}", where=str(path)) from error
    _refuse_password(content, source=str(path))
    return settings_from(content, source=str(path))


def settings_from(content: Mapping[str, Any], *, source: str) -> Settings:
    """Return the settings that ``content`` and the ``RINGTRUE_*`` variables make together.

    ``source`` is what errors call the place ``content`` came from.

    Raises:
        ConfigError: As `load_settings`.
    """
    problems: list[Problem] = unknown_variables(Settings, os.environ)
    settings: Settings | None = None
    try:
        settings = Settings(**content)
    except ValidationError as error:
        problems += validation_problems(error, Settings, source=source, environ=os.environ)
    except SettingsError as error:
        raise ConfigError("a RINGTRUE_ variable is not the JSON its key needs", where=source) from error
    if problems or settings is None:
        first, *others = problems
        also = "".join(f"; {problem.where}: {problem.message}" for problem in others)
        raise ConfigError(first.message + also, where=first.where)
    return settings


def _refuse_password(content: Mapping[str, Any], *, source: str) -> None:
    """A password in the file would be a secret in a file; a variable may carry it."""
    store = content.get("store")
    url = store.get("url") if isinstance(store, dict) else None
    if not isinstance(url, str):
        return
    parts = urlsplit(url)
    if parts.password or "password" in parse_qs(parts.query):
        raise ConfigError(
            "holds a password",
            where=f"{source}: store.url",
            remedy="Leave it out and set PGPASSWORD, or give the whole URL in RINGTRUE_STORE__URL",
        )
