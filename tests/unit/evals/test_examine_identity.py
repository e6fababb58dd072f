from collections.abc import Sequence

import numpy as np

from evals.identity import Registered
from ringtrue.records import (
    Cause,
    Check,
    State,
)
from ringtrue.verdict import state_of
from tests.unit.evals.examined import Night
from tests.unit.evals.tiny import (
    TinyEndpoint,
    TinyReference,
    log_softmax,
    logits_of,
)


def roll(logits: np.ndarray) -> np.ndarray:
    return np.roll(logits, 7)


async def test_a_registered_model_that_explains_the_answers_is_named_and_is_the_cause() -> None:
    class Rolled(TinyReference):
        async def next_token(self, ids: Sequence[int]) -> np.ndarray:
            return log_softmax(roll(logits_of(ids)))

    night = Night(registered=Registered({"rolled": Rolled(model="rolled")}))
    findings = await night.run(TinyEndpoint(corrupt=lambda _ids, logits: roll(logits)))

    assert state_of(findings[Check.IDENTITY]) is State.WORSE
    assert "rolled" in findings[Check.IDENTITY].message
    assert findings[Check.IDENTITY].cause is Cause.IDENTITY
    assert findings[Check.LOGPROBS].cause is Cause.IDENTITY


async def test_a_registered_precision_that_explains_the_answers_is_numerics_and_named() -> None:
    class Rolled(TinyReference):
        async def next_token(self, ids: Sequence[int]) -> np.ndarray:
            return log_softmax(roll(logits_of(ids)))

    other = Rolled(model="tiny@int4")
    night = Night(registered=Registered({"tiny@int4": other}, frozenset({"tiny@int4"})))
    findings = await night.run(TinyEndpoint(corrupt=lambda _ids, logits: roll(logits)))

    assert state_of(findings[Check.IDENTITY]) is State.OK
    assert findings[Check.LOGPROBS].cause is Cause.NUMERICS
    assert findings[Check.LOGPROBS].alternatives == ()
    assert "explained by tiny@int4" in findings[Check.LOGPROBS].message
