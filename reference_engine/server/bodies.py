"""Request bodies, as clients of OpenAI and vLLM send them.

Fields that would change the answer and are not supported are refused;
others that we do not know are ignored, as vLLM does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator, Field, StrictInt, StrictStr, ValidationError

from reference_engine.server.api_errors import ApiError
from reference_engine.server.rendering import Rendering

_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "min_tokens": (0,),
    "top_k": (-1, 0),
    "logit_bias": ({},),
    "use_beam_search": (False,),
    "suffix": ("",),
    "functions": ([],),
}

BodyT = TypeVar("BodyT", bound=BaseModel)


def parse_body(raw: bytes, kind: type[BodyT]) -> BodyT:
    """Return the body of a request.

    Raises:
        ApiError: 400 for invalid JSON, a wrong field, or one that is not supported; names the field.
    """
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, f"the body is not valid JSON: {error}") from error
    if not isinstance(data, dict):
        raise ApiError(400, "the body must be a JSON object")
    for field, neutral in _NEUTRAL.items():
        if data.get(field) is not None and data[field] not in neutral:
            raise ApiError(400, f"this server does not support {field}", param=field)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        param = ".".join(str(part) for part in first["loc"]) or None
        raise ApiError(400, f"{param or 'body'}: {first['msg']}", param=param) from error


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value if value is not None else []


def _flat_content(message: Any) -> Any:
    """Join typed text parts with newlines, as vLLM does for templates that expect a string."""
    if not isinstance(message, dict):
        return message
    content = message.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, dict) and part.get("type") == "text" for part in content):
            raise ValueError("only content parts of type text are supported")
        content = "\n".join(str(part.get("text", "")) for part in content)
    return {**message, "content": "" if content is None else content}


class _Message(BaseModel, extra="allow"):
    role: StrictStr
    content: StrictStr


Message = Annotated[_Message, BeforeValidator(_flat_content)]


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class GenerationBody(BaseModel):
    """What the two generating routes have in common."""

    model: str
    stream: bool = False
    stream_options: StreamOptions | None = None
    temperature: float = Field(default=1.0, ge=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    seed: int | None = None
    stop: Annotated[list[StrictStr], BeforeValidator(_as_list)] = []
    stop_token_ids: list[StrictInt] = []
    ignore_eos: bool = False
    prompt_logprobs: int | None = Field(default=None, ge=0)
    return_token_ids: bool = False
    return_tokens_as_token_ids: bool = False
    user: str | None = None
    prompt_cache_key: str | None = None
    response_format: dict[str, Any] | None = None


class ChatBody(GenerationBody, Rendering):
    """``POST /v1/chat/completions``."""

    messages: list[Message] = Field(min_length=1)
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    logprobs: bool = False
    top_logprobs: int | None = Field(default=None, ge=0)


class CompletionBody(GenerationBody):
    """``POST /v1/completions``."""

    prompt: StrictStr | list[StrictInt] | list[StrictStr] | list[list[StrictInt]]
    max_tokens: int = Field(default=16, ge=0)
    logprobs: int | None = Field(default=None, ge=0)
    echo: bool = False

    @property
    def prompts(self) -> list[Any]:
        """The prompts, one a choice, each text or a list of token IDs."""
        single = isinstance(self.prompt, str) or all(isinstance(part, int) for part in self.prompt)
        return [self.prompt] if single else [*self.prompt]


class TokenizeBody(Rendering):
    """``POST /tokenize``: a prompt or a chat."""

    model: str | None = None
    prompt: StrictStr | None = None
    messages: list[Message] | None = Field(default=None, min_length=1)
    add_special_tokens: bool = True
