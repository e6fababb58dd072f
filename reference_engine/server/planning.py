"""From a request body to prompts: what is asked, checked against what the replica can give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reference_engine.generation import GenerationSpec
from reference_engine.server.answering import Prompt
from reference_engine.server.api_errors import ApiError
from reference_engine.server.bodies import ChatBody, CompletionBody, GenerationBody, TokenizeBody
from reference_engine.server.prompting import chat_ids, completion_ids, cut_context
from reference_engine.server.replica import Treatment
from reference_engine.server.tool_calls.choosing import forced_chat, forced_completion
from toolcall_validator.schemas import Schemas

DrawSeed = Callable[[], int]


def plan_chat(
    body: ChatBody, treatment: Treatment, *, max_logprobs: int, draw_seed: DrawSeed, schemas: Schemas
) -> list[Prompt]:
    """Return the one prompt of a chat; ``schemas`` keeps what was compiled.

    Raises:
        ApiError: 400 for what cannot be served; ModelError comes from the template.
    """
    if body.top_logprobs is not None and not body.logprobs:
        raise ApiError(400, "top_logprobs needs logprobs: true", param="top_logprobs")
    top = (body.top_logprobs or 0) if body.logprobs else 0
    _check_k(top, max_logprobs, "top_logprobs")
    chat = body.chat(body.messages)
    ids = cut_context(chat_ids(treatment.model.codec, chat, treatment.faults), treatment.faults)
    room = treatment.model.context_length - len(ids)
    max_tokens = body.max_completion_tokens or body.max_tokens or max(room, 1)
    spec = _spec(body, treatment, max_tokens=max_tokens, top=top, draw_seed=draw_seed)
    forced = forced_chat(body, treatment, ids, _value_seed(spec), schemas)
    prompt = _prompt(body, treatment, ids, spec, max_logprobs)
    return [replace(prompt, forced=forced, scored=body.logprobs)]


def plan_completion(
    body: CompletionBody, treatment: Treatment, *, max_logprobs: int, draw_seed: DrawSeed, schemas: Schemas
) -> list[Prompt]:
    """Return the prompts of a completion, one a choice; ``schemas`` keeps what was compiled.

    Raises:
        ApiError: 400 for what cannot be served.
    """
    if body.max_tokens == 0 and not body.echo:
        raise ApiError(400, "max_tokens 0 needs echo: true", param="max_tokens")
    if body.echo and body.stream:
        raise ApiError(400, "echo is not supported in a stream", param="echo")
    if body.response_format not in (None, {"type": "text"}):
        raise ApiError(400, "response_format needs the chat route", param="response_format")
    top = body.logprobs or 0
    _check_k(top, max_logprobs, "logprobs")
    prompts = []
    for text in body.prompts:
        ids = cut_context(completion_ids(treatment.model.codec, text, treatment.faults), treatment.faults)
        spec = _spec(body, treatment, max_tokens=body.max_tokens, top=top, draw_seed=draw_seed)
        prompt = _prompt(body, treatment, ids, spec, max_logprobs)
        forced = forced_completion(treatment, ids, _value_seed(spec), schemas)
        prompts.append(replace(prompt, forced=forced, scored=body.logprobs is not None))
    return prompts


def tokenized(body: TokenizeBody, treatment: Treatment) -> tuple[int, ...]:
    """Return the IDs that the generating routes would use, before the context is cut.

    Raises:
        ApiError: 400 without a prompt or messages; ModelError comes from the template.
    """
    codec, faults = treatment.model.codec, treatment.faults
    if body.messages is not None:
        return chat_ids(codec, body.chat(body.messages), faults)
    if body.prompt is None:
        raise ApiError(400, "send prompt or messages", param="prompt")
    return completion_ids(codec, body.prompt, faults, add_special_tokens=body.add_special_tokens)


def _spec(
    body: GenerationBody, treatment: Treatment, *, max_tokens: int, top: int, draw_seed: DrawSeed
) -> GenerationSpec:
    echoed_top = None
    if isinstance(body, CompletionBody) and body.echo and (body.logprobs is not None or max_tokens == 0):
        echoed_top = top
    wanted = [k for k in (body.prompt_logprobs, echoed_top) if k is not None]
    stops = frozenset(body.stop_token_ids)
    faults = treatment.faults
    return GenerationSpec(
        max_tokens=max_tokens,
        temperature=faults.temperature(body.temperature),
        top_p=body.top_p,
        top_k=faults.top_k,
        skip_first=faults.drop_top_token,
        end_bias=faults.end_bias,
        seed=draw_seed() if body.seed is None or faults.ignore_seed else body.seed % 2**64,
        top=top,
        prompt_top=max(wanted) if wanted else None,
        stop_ids=stops if body.ignore_eos else stops | treatment.model.eos_ids,
    )


def _value_seed(spec: GenerationSpec) -> int:
    """The seed of forced values: at temperature 0 always the same."""
    return spec.seed if spec.temperature > 0 else 0


def _prompt(
    body: GenerationBody, treatment: Treatment, ids: tuple[int, ...], spec: GenerationSpec, max_logprobs: int
) -> Prompt:
    if body.prompt_logprobs is not None:
        _check_k(body.prompt_logprobs, max_logprobs, "prompt_logprobs")
        if body.stream:
            raise ApiError(400, "prompt_logprobs is not supported in a stream", param="prompt_logprobs")
    if not ids:
        raise ApiError(400, "the prompt has no tokens", param="prompt")
    limit = treatment.model.context_length
    if len(ids) + spec.max_tokens > limit:
        raise ApiError(
            400,
            f"this model's maximum context length is {limit} tokens, but {len(ids) + spec.max_tokens} were "
            f"requested ({len(ids)} in the prompt, {spec.max_tokens} for the answer)",
            param="messages" if isinstance(body, ChatBody) else "prompt",
            code="context_length_exceeded",
        )
    return Prompt(treatment, ids, spec, body.stop)


def _check_k(k: int, limit: int, field: str) -> None:
    if k > limit:
        raise ApiError(400, f"{field} is {k}, this server gives at most {limit}", param=field)
