"""Many short sessions: is a share of them served by something else?"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from evals import availability
from evals.parts.asker import Asker
from evals.parts.keyed_asking import ask_keyed
from evals.parts.part import Known
from evals.parts.sessions.answers import SessionAnswers
from evals.parts.sessions.honest import HonestSessions
from evals.parts.sieve import WITHHELD
from evals.truth import FloorCache
from logprob_drift.alarms.session_scores import Fingerprint, fingerprint, judge_relative, session_scores
from logprob_drift.session_finding import session_finding
from logprob_drift.vocabulary import Vocabulary
from probes.cache_key import CacheKeys, new_keys
from probes.dialects import dialect_named
from probes.sessions import CANDIDATES, candidate_prompts, session_request
from ringtrue.endpoint import Reference
from ringtrue.errors import ConfigError
from ringtrue.records import Check, EndpointSpec, Finding, Party, Request, State

CHUNK = 25  # sessions between two looks
SHARE = 0.05  # of sessions, that an OK excludes


class SessionsPart:
    """Asks a few prompts in many sessions and looks for some that diverge grossly where the others don't.

    Only endpoints with logprobs that are trusted are asked: without them a
    session of a few tokens is no fingerprint, and the part says nothing, since
    the check is UNKNOWN already. It stops once a mixture is found. The share
    of bad sessions is then estimated from those asked, and tends to be high.

    Sessions are assumed to be routed independently of their prompts, which are
    the same in all: a balancer that looks at nothing else sends all sessions to
    one backend, and nothing shows it.
    """

    name = "sessions"
    check = Check.SESSIONS

    def __init__(
        self,
        reference: Reference,
        *,
        seed: int,
        floor_dtype: str,
        k: int = 20,
        sessions: int = 125,
        prompts: int = 2,
        calibration: int = 400,
        cache: FloorCache | None = None,
    ) -> None:
        """Cut the prompts.

        Raises:
            ConfigError: a number is too small.
        """
        for what, value in (("sessions", sessions), ("prompts a session", prompts), ("logprobs", k)):
            if value < 1:
                raise ConfigError(
                    f"{value} {what} can't be asked", where="parts.sessions", remedy="Ask at least 1"
                )
        self._reference = reference
        self._sessions = sessions
        self._candidates = candidate_prompts(reference, max(CANDIDATES, prompts), seed=seed)
        self._tokens = {p.id: reference.render(p.messages) for p in self._candidates}
        self._count = prompts
        self._honest = HonestSessions(
            reference,
            self._candidates,
            count=self._count,
            sessions=calibration,
            dtype=floor_dtype,
            k=k,
            seed=seed,
            cache=cache,
        )
        self._vocabulary: Vocabulary | None = None

    @property
    def basis(self) -> str:
        """A hash of the reference, the prompts and the honest sessions' settings."""
        return self._honest.key[:16]

    def planned(self, spec: EndpointSpec) -> Sequence[tuple[Request, int]]:
        """Return every session's prompts, and the first again as often as its cache key may be refused.

        Which prompts the reference will choose is not known yet: the longest are taken.
        """
        dialect = dialect_named(spec.dialect)
        keys = CacheKeys(dialect)
        longest = sorted(self._candidates, key=lambda p: -len(self._tokens[p.id]))[: self._count]
        names = new_keys(self.name, spec.name, count=self._sessions)
        k = self._honest.ks[0]
        asked = [
            (keys.put(session_request(p, name, k=k, dialect=dialect)), len(self._tokens[p.id]))
            for name in names
            for p in longest
        ]
        return [*asked, *asked[:1] * len(dialect.cache_fields(""))]

    async def examine(self, asker: Asker, known: Known) -> tuple[Finding, ...]:
        """Ask and judge; no finding where there are no logprobs to trust."""
        ks = [k for k in self._honest.ks if known.k is not None and k <= known.k]
        if not ks or not known.trusted:
            return ()
        honest = await self._honest.drawn()
        limit = fingerprint(session_scores(honest.at(ks[0])))
        expected = [self._tokens[prompt.id] for prompt in honest.prompts]
        night = SessionAnswers(honest.prompts, expected, self._reference, self._known_tokens(), k=ks[0])
        keys = CacheKeys(asker.dialect)
        names = new_keys(asker.run, asker.spec.name, self.name, count=self._sessions)
        for start in range(0, self._sessions, CHUNK):
            await self._ask(asker, keys, night, names[start : start + CHUNK], ks[0])
            verdict = judge_relative(night.scores, limit, share=SHARE)
            if verdict.state is State.CHANGED or asker.stopped is not None or night.sieve.mostly_withheld:
                break
        return (await self._conclude(asker, night, limit),)

    async def aclose(self) -> None:
        """Stop what is still being computed."""
        await self._honest.aclose()

    async def _ask(
        self, asker: Asker, keys: CacheKeys, night: SessionAnswers, names: Sequence[str], k: int
    ) -> None:
        """Ask some sessions, prompt after prompt.

        A session's prompts never overlap, so that they share one connection:
        as many sessions as may be in flight go side by side.
        """
        abreast = max(1, asker.spec.limits.max_in_flight)
        for start in range(0, len(names), abreast):
            block = names[start : start + abreast]
            for index, prompt in enumerate(night.prompts):
                requests = [session_request(prompt, name, k=k, dialect=asker.dialect) for name in block]
                async with aclosing(ask_keyed(asker, keys, requests)) as exchanges:
                    async for exchange in exchanges:
                        await night.take(index, exchange)

    async def _conclude(self, asker: Asker, night: SessionAnswers, limit: Fingerprint | None) -> Finding:
        name = asker.spec.name
        verdict = judge_relative(night.scores, limit, share=SHARE)
        if night.sieve.mostly_withheld:
            return availability.unmeasured(name, self.check, WITHHELD, Party.UNKNOWN)
        if verdict.state is State.UNKNOWN and asker.stopped is not None:
            return availability.unmeasured_because(name, self.check, asker.stopped, n=verdict.n)
        if verdict.share is not None:
            await asker.number("bad_sessions", verdict.share, "share", verdict.n)
        bad = night.bad(limit)
        return session_finding(
            name, verdict, limit, asked=night.asked, share=SHARE, bad=bad, basis=night.basis
        )

    def _known_tokens(self) -> Vocabulary:
        if self._vocabulary is None:
            size = self._reference.vocabulary_size
            self._vocabulary = Vocabulary.build(size, self._reference.token_bytes)
        return self._vocabulary
