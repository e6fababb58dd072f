"""Series of nights through whole cycles, with nights that are odd: late, missing, twice, out of order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from ringtrue.records import Check, Finding, Observation, State
from tests.unit.collector.bench import NOON, Bench, finding, settings

DAY = timedelta(days=1)


@dataclass
class Served:
    """What every endpoint gives tonight: its mean KL, its k, and the numbers of the parts."""

    bench: Bench
    kl: float = 0.001
    k: float = 20.0
    capped: float | None = 0.0

    def numbers(self, name: str, run: str) -> Sequence[Observation]:
        now = self.bench.time.now
        curve = [
            Observation(name, "p", metric, value, "nats", 4, now, run, context_length=32)
            for metric, value in (("kl_mean", self.kl), ("k_min", self.k))
        ]
        if self.capped is None:
            return curve
        return [*curve, Observation(name, "answers", "capped_answers", self.capped, "share", 60, now, run)]

    async def as_the_model(self, emit: Callable[[], Awaitable[None]], name: str) -> Sequence[Finding]:
        await emit()
        tokens = replace(finding(name), check=Check.TOKENS)
        return [replace(finding(name), value=self.kl), tokens]

    async def pass_nights(self, count: int, after: timedelta = DAY) -> State:
        """Run a cycle a night and return what is then said of a's logprobs."""
        for _ in range(count):
            await self.bench.cycle()
            self.bench.time.now += after
        return self.bench.store.previous_verdicts()["a", Check.LOGPROBS].verdict

    def state(self, stream: str = "kl_mean@32", endpoint: str = "a") -> dict[str, object]:
        """Return what the newest run says of a stream."""
        findings = self.bench.store.findings(self.newest)
        (state,) = (
            found.evidence["series"][stream]
            for found in findings
            if found.endpoint == endpoint and stream in found.evidence.get("series", {})
        )
        return state

    @property
    def newest(self) -> str:
        return max(self.bench.store.current_verdicts(), key=lambda verdict: verdict.run).run


@pytest.fixture
def served(bench: Bench) -> Served:
    served = Served(bench)
    bench.settings = only("a")
    bench.measured = served.numbers
    bench.scripts = dict.fromkeys(("a", "b", "a-2"), served.as_the_model)
    return served


def only(*names: str) -> object:
    return settings(
        endpoints=[{"name": name, "base_url": f"http://{name}/v1", "model": "m"} for name in names]
    )


async def test_a_lasting_change_is_seen_in_the_series_of_nights_and_names_its_first_night(
    served: Served,
) -> None:
    assert await served.pass_nights(20) is State.OK
    served.kl = 0.003
    assert await served.pass_nights(8) is State.CHANGED
    store = served.bench.store
    assert store.previous_verdicts()["a", Check.LOGPROBS].since == NOON + 20 * DAY
    assert store.previous_verdicts()["a", Check.OUTPUT].verdict is State.OK
    (alarm,) = store.alarms("a")
    assert alarm.threshold == 365  # one endpoint, one bucket, no parts, one false alarm a year


async def test_one_night_only_is_no_alarm_and_says_how_many_are_missing(served: Served) -> None:
    assert await served.pass_nights(1) is State.OK
    assert (served.state()["nights"], served.state()["missing_nights"]) == (1, 14)
    assert served.bench.store.previous_verdicts()["a", Check.OUTPUT].verdict is State.UNKNOWN
    assert served.bench.store.alarms("a") == ()


async def test_a_constant_series_is_no_alarm(served: Served) -> None:
    assert await served.pass_nights(20) is State.OK
    assert served.state()["evidence"] < served.state()["threshold"]
    assert served.bench.store.alarms("a") == ()


async def test_nights_that_were_missed_are_no_nights(served: Served) -> None:
    await served.pass_nights(10)
    served.bench.time.now += 40 * DAY
    assert await served.pass_nights(6) is State.OK
    assert (served.state()["nights"], served.state()["missing_nights"]) == (16, 0)


async def test_a_schedule_in_local_time_loses_a_night_at_most_when_the_clocks_change(
    served: Served,
) -> None:
    # 01:30 local is 00:30 UTC; when an hour is lost the next run falls on the same UTC day.
    served.bench.time.now = datetime(2026, 3, 20, 0, 30, tzinfo=NOON.tzinfo)
    await served.pass_nights(9)
    served.bench.time.now -= timedelta(hours=1)
    await served.pass_nights(8)
    assert served.state()["nights"] == 16
    served.bench.time.now += timedelta(hours=1)
    assert await served.pass_nights(4) is State.OK
    assert served.state()["nights"] == 20
    assert served.bench.store.alarms("a") == ()


async def test_a_rerun_of_a_night_replaces_it(served: Served) -> None:
    await served.pass_nights(15)
    served.kl = 0.5
    await served.pass_nights(3, after=timedelta(minutes=20))
    assert served.state()["nights"] == 16
    served.kl = 0.001
    assert await served.pass_nights(1) is State.OK
    assert served.state()["nights"] == 16
    assert served.bench.store.alarms("a") == ()


async def test_a_clock_that_is_set_back_leaves_out_what_began_later(served: Served) -> None:
    await served.pass_nights(18)
    served.bench.time.now -= 10 * DAY
    assert await served.pass_nights(1) is State.OK
    assert served.state()["nights"] == 9
    served.bench.time.now = NOON + 3650 * DAY  # once by ten years ahead
    await served.pass_nights(1)
    served.bench.time.now = NOON + 18 * DAY
    assert await served.pass_nights(2) is State.OK
    assert served.state()["nights"] == 20
    served.kl = 0.003
    assert await served.pass_nights(8) is State.CHANGED


async def test_another_k_begins_a_new_baseline_and_says_so(served: Served) -> None:
    await served.pass_nights(20)
    served.k, served.kl = 5.0, 0.0005
    assert await served.pass_nights(3) is State.OK
    assert (served.state()["nights"], served.state()["missing_nights"]) == (3, 12)
    assert served.bench.store.alarms("a") == ()


async def test_a_renamed_endpoint_begins_anew_and_the_old_name_keeps_its_alarm(served: Served) -> None:
    await served.pass_nights(18)
    served.kl = 0.003
    assert await served.pass_nights(6) is State.CHANGED
    served.bench.settings = only("a-2")
    await served.pass_nights(3)
    verdicts = served.bench.store.previous_verdicts()
    assert verdicts["a-2", Check.LOGPROBS].verdict is State.OK
    assert served.state(endpoint="a-2")["missing_nights"] == 12
    assert verdicts["a", Check.LOGPROBS].verdict is State.CHANGED
    (alarm,) = served.bench.store.alarms("a")
    assert alarm.closed is None
    served.bench.settings = only("a")
    assert await served.pass_nights(1) is State.CHANGED


async def test_duplicate_rows_of_a_run_count_once(served: Served) -> None:
    served.bench.measured = lambda name, run: [*served.numbers(name, run)] * 2
    assert await served.pass_nights(16) is State.OK
    assert (served.state()["nights"], served.state("capped_answers")["nights"]) == (16, 16)


async def test_a_night_with_another_number_of_answers_than_usual_says_that_it_can_not_be_compared(
    served: Served,
) -> None:
    def fewer(name: str, run: str) -> Sequence[Observation]:
        return [replace(one, n=3) if one.metric == "kl_mean" else one for one in served.numbers(name, run)]

    await served.pass_nights(15)
    served.bench.measured = fewer
    assert await served.pass_nights(1) is State.OK
    assert served.state() == {"tonight": "3 were measured tonight, where 4 are usual"}
    # What lasts becomes usual, and begins a baseline of its own.
    await served.pass_nights(9)
    assert served.state()["nights"] < 14
    assert served.bench.store.alarms("a") == ()
