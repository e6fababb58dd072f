from collections.abc import Sequence
from dataclasses import dataclass, field

from evals.examine import Examination, examine
from evals.parts.answered_ids import same_ids
from evals.parts.asker import GIVE_UP_AFTER, Asker
from evals.parts.part import Known
from evals.plan import ExaminePlan
from evals.questions import Questions
from evals.truth import Truth
from ringtrue.records import (
    Cause,
    Check,
    EndpointSpec,
    Failure,
    FailureKind,
    Finding,
    Observation,
    Party,
    Request,
    Severity,
    State,
)
from tests.unit.evals.tiny import TinyEndpoint, TinyReference, curve_prompts, still_clock

COUNTS = {32: 64, 128: 16}


@dataclass
class Echo:
    """A part that asks some prompts and finds how many had their own IDs."""

    asked: int = 12
    basis: str = "echo"
    known: list[Known] = field(default_factory=list)
    name: str = "echo"
    check: Check = Check.OUTPUT

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        return [
            (Request(f"echo-{i}", ({"role": "user", "content": f"question {i}"},), return_token_ids=True), 25)
            for i in range(self.asked)
        ]

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:
        self.known.append(known)
        same = 0
        async for exchange in asker.ask([request for request, _ in self.planned(asker.spec)]):
            if exchange.error is None:
                same += same_ids(exchange, TinyReference().render(exchange.request.messages or ())) is True
        await asker.number("same", same / self.asked, "share", self.asked)
        return (
            Finding(
                asker.spec.name,
                self.check,
                "output.same",
                Severity.INFO,
                Party.UNKNOWN,
                Cause.UNKNOWN,
                f"{same} alike",
                n=same,
            ),
        )

    async def aclose(self) -> None:
        return None


@dataclass
class Asked:
    observations: list[Observation] = field(default_factory=list)
    progress: list[int] = field(default_factory=list)

    async def run(self, endpoint: TinyEndpoint, *parts: Echo) -> tuple[Examination, Questions]:
        truth = Truth(TinyReference(), curve_prompts(COUNTS), floor_dtype="bf16", k=20, seed=0)
        questions = Questions(truth, ExaminePlan(self_test=False), parts)
        examination = await examine(
            endpoint,
            questions,
            run="r1",
            clock=still_clock(),
            emit=self._emit,
            on_progress=self.progress.append,
        )
        return examination, questions

    async def _emit(self, observations: Sequence[Observation]) -> None:
        self.observations += observations


def of(examination: Examination, check: Check) -> Finding:
    (finding,) = (finding for finding in examination.findings if finding.check is check)
    return finding


async def test_a_part_is_asked_after_the_curve_and_told_what_it_showed() -> None:
    part, asked = Echo(), Asked()
    examination, questions = await asked.run(TinyEndpoint(), part)
    assert part.known == [Known(k=20, trusted=True, scaling=None, logprobs=State.OK)]
    assert of(examination, Check.OUTPUT).n == part.asked
    assert sum(asked.progress) == questions.steps(TinyEndpoint().spec) == 80 + part.asked
    (number,) = (one for one in asked.observations if one.metric == "same")
    assert (number.probe, number.value, number.n) == ("echo", 1.0, part.asked)


async def test_what_a_part_sent_counts_for_the_wire() -> None:
    examination, _ = await Asked().run(TinyEndpoint(), Echo())
    assert of(examination, Check.WIRE).n == 80 + 12


async def test_an_endpoint_that_fails_a_part_is_given_up_and_all_steps_are_done_with() -> None:
    broken = Failure(FailureKind.SERVER_ERROR, "it broke", Party.PROVIDER, 500)
    endpoint = TinyEndpoint(fail=lambda request, _: broken if request.id.startswith("echo") else None)
    part, asked = Echo(asked=40), Asked()
    examination, questions = await asked.run(endpoint, part)
    failed = [one for one in asked.observations if one.probe == "echo" and one.metric == "answered"]
    assert [one.value for one in failed] == [0.0] * GIVE_UP_AFTER
    assert sum(asked.progress) == questions.steps(endpoint.spec)
    assert of(examination, Check.WIRE).severity is Severity.FAIL


async def test_parts_are_not_asked_of_an_endpoint_that_answered_nothing() -> None:
    gone = Failure(FailureKind.UNREACHABLE, "nobody listens", Party.PROVIDER)
    part, asked = Echo(), Asked()
    examination, questions = await asked.run(TinyEndpoint(fail=lambda *_: gone), part)
    assert part.known == []
    assert not of(examination, Check.OUTPUT).measured
    assert of(examination, Check.OUTPUT).message == "nobody listens"
    assert sum(asked.progress) == questions.steps(TinyEndpoint().spec)


async def test_an_endpoint_without_logprobs_is_known_to_have_none() -> None:
    part = Echo()
    await Asked().run(TinyEndpoint(shows_logprobs=False), part)
    assert part.known == [Known(k=None, trusted=False, scaling=None, logprobs=State.UNKNOWN)]


async def test_the_basis_changes_with_what_any_part_asks() -> None:
    _, alone = await Asked().run(TinyEndpoint())
    _, first = await Asked().run(TinyEndpoint(), Echo())
    _, again = await Asked().run(TinyEndpoint(), Echo())
    _, other = await Asked().run(TinyEndpoint(), Echo(basis="other"))
    assert alone.basis == alone.truth.basis
    assert first.basis == again.basis
    assert len({alone.basis, first.basis, other.basis}) == 3
