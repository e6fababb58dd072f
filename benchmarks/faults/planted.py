"""The faults: weights, precision, positions, sampling, routing and identity, each by a knob of the engine."""

from __future__ import annotations

from dataclasses import dataclass, field

from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from ringtrue.records import Cause, Check

BASE = "smollm2-135m"
OTHER = f"{BASE}@tuned:steps=20:rate=3e-5"
"""The checkpoint that is registered beside the reference: the same architecture, trained further."""

CORRUPT_FROM = 1024  # tokens


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to serve another model than the one that was promised.

    ``variant`` is the served model's name. ``check`` and ``cause`` are what a
    night has to say, ``None`` where the fault may lie below the noise floor:
    it is then listed with what the night saw.
    """

    name: str
    variant: str
    faults: Faults = field(default_factory=Faults)
    check: Check | None = None
    cause: Cause | None = None

    @property
    def draws(self) -> bool:
        """Whether only what is drawn is wrong, not the distribution it is drawn from."""
        return self.faults.drop_top_token or self.faults.temperature_factor != 1.0

    def replica(self, seed: int = 0) -> Replica:
        """Return the replica that has the fault."""
        return Replica(
            served_name=BASE, model=self.variant, faults=self.faults, healthy=f"{BASE}@bf16", seed=seed
        )


HONEST = Fault("honest", f"{BASE}@bf16")

FAULTS = (
    Fault("int8 weights", f"{BASE}@int8+bf16"),
    Fault("int4 weights", f"{BASE}@int4+bf16", check=Check.LOGPROBS, cause=Cause.NUMERICS),
    Fault("one fine-tune step, 1e-6", f"{BASE}@tuned:steps=1:rate=1e-6+bf16"),
    Fault(
        "one fine-tune step, 1e-4",
        f"{BASE}@tuned:steps=1:rate=1e-4+bf16",
        check=Check.LOGPROBS,
        cause=Cause.NUMERICS,
    ),
    Fault("8-bit cache (e4m3)", f"{BASE}@kv-fp8+bf16", check=Check.LOGPROBS, cause=Cause.NUMERICS),
    Fault("8-bit cache (int8)", f"{BASE}@kv-int8+bf16"),
    Fault("rope base halved", f"{BASE}@rope:base=50000+bf16", check=Check.LOGPROBS, cause=Cause.NUMERICS),
    Fault(
        "top token never drawn",
        f"{BASE}@bf16",
        Faults(drop_top_token=True),
        check=Check.SAMPLING,
        cause=Cause.SAMPLING,
    ),
    Fault(
        "temperature x 1.1",
        f"{BASE}@bf16",
        Faults(temperature_factor=1.1),
        check=Check.SAMPLING,
        cause=Cause.SAMPLING,
    ),
    Fault("another checkpoint", f"{OTHER}+bf16", check=Check.LOGPROBS, cause=Cause.IDENTITY),
    Fault(
        "int4 in 5 % of sessions",
        f"{BASE}@int4+bf16",
        Faults(share=0.05),
        check=Check.SESSIONS,
        cause=Cause.MIXTURE,
    ),
    Fault(
        "corrupt beyond 1,024",
        f"{BASE}@bf16",
        Faults(corrupt_beyond=CORRUPT_FROM),
        check=Check.CONTEXT,
        cause=Cause.CONTEXT,
    ),
)
