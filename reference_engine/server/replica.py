"""One served model: its name, its weights, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from reference_engine.engine import Engine
from reference_engine.models.loading import LoadedModel
from reference_engine.models.names import parse_name
from reference_engine.server.faults import Faults


@dataclass(frozen=True, slots=True)
class Replica:
    """What ``ringtrue serve`` serves at one port.

    ``served_name`` is what clients ask for, ``model`` the name of what they
    get. With ``faults.share`` below 1 the healthy sessions get ``healthy``
    instead, by default the same base in the same dtype, neither rounded nor
    changed.
    ``tool_format`` names the raw format that calls are written in,
    ``chat_template`` is the text of a template used in place of the model's own.
    ``api_key`` is an ``env:NAME`` reference. ``max_logprobs`` is the largest k.
    """

    served_name: str
    model: str
    faults: Faults = field(default_factory=Faults)
    healthy: str | None = None
    api_key: str | None = None
    max_logprobs: int = 20
    seed: int = 0
    tool_format: str = "hermes"
    chat_template: str | None = None


@dataclass(frozen=True, slots=True)
class Treatment:
    """What one session gets."""

    model: LoadedModel
    faults: Faults
    tool_format: str = "hermes"


class Sessions:
    """Decides which sessions meet a replica's faults."""

    def __init__(self, engine: Engine, replica: Replica) -> None:
        """Load what the replica serves; takes seconds the first time.

        Raises:
            ModelError: a model cannot be named, found, loaded or built.
        """
        self._replica = replica
        self.faulty = self._treatment(engine.load(replica.model), replica.faults)
        self.healthy = self.faulty
        if replica.faults.share < 1:
            name = replica.healthy or parse_name(replica.model).unchanged
            self.healthy = self._treatment(engine.load(name), Faults())

    def _treatment(self, model: LoadedModel, faults: Faults) -> Treatment:
        template = self._replica.chat_template
        if template is not None:
            model = replace(model, codec=model.codec.with_template(template))
        return Treatment(model, faults, self._replica.tool_format)

    def treatment(self, session: str) -> Treatment:
        """Return what this session gets, the same at every call."""
        return self.faulty if self._replica.faults.meets(session, self._replica.seed) else self.healthy
