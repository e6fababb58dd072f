"""Errors as an OpenAI-compatible server words them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ringtrue.errors import ModelError, RingtrueError, UsageError

_log = logging.getLogger(__name__)


class ApiError(Exception):
    """An answer that is an error: ``{"error": {"message", "type", "param", "code"}}``."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        """Return the JSON of the answer."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return {"error": error}


def as_api_error(error: Exception) -> ApiError:
    """Return the answer for any exception; one that nobody foresaw is a 500 without detail."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):
        return ApiError(error.status_code, error.detail)
    if isinstance(error, ModelError | UsageError):
        return ApiError(400, str(error))
    if isinstance(error, RingtrueError):
        return ApiError(500, str(error))
    return ApiError(500, "the server failed; its log says why")


def json_response(content: Any, status: int = 200) -> Response:
    """Return a JSON answer; NaN and infinities become null, since JSON has none."""
    return Response(orjson.dumps(content), status, media_type="application/json")


async def answer_error(_request: Request, error: Exception) -> Response:
    """Answer an exception of a route."""
    answer = as_api_error(error)
    if answer.status >= 500:
        _log.error("a request failed", exc_info=error)
    return json_response(answer.body(), answer.status)


def error_handlers() -> Mapping[Any, Callable[[Request, Exception], Awaitable[Response]]]:
    """Return the table for Starlette: every exception becomes an OpenAI-shaped answer."""
    return dict.fromkeys((ApiError, RingtrueError, HTTPException, Exception), answer_error)
