"""Every way in which a server can fail: what a person is told, and that nothing received is lost."""

from __future__ import annotations

import ssl

import pytest
import trustme

from ringtrue.records import FailureKind, Party
from tests.contract.fakes import HELLO, HELLO_STREAMED, endpoint_at
from tests.contract.fault_server import (
    Act,
    Script,
    chat_answer,
    chat_delta,
    error_script,
    json_script,
    refused_port,
    serve,
    stream_script,
)

PAGE = b"<!DOCTYPE html><html><head><title>Welcome to nginx!</title></head></html>"


async def test_a_refused_connection_is_unreachable_and_names_host_and_port() -> None:
    port = refused_port()
    async with endpoint_at(f"http://127.0.0.1:{port}/v1") as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.UNREACHABLE
    assert exchange.error.party is Party.PROVIDER
    assert f"ep (127.0.0.1:{port}/v1/chat/completions): cannot connect" in exchange.error.message
    assert "Check that the server runs" in exchange.error.message
    assert exchange.attempts[0].failure == exchange.error
    assert exchange.timings.first_byte is None


async def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    async with endpoint_at("http://no-such-host.invalid/v1") as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.UNREACHABLE
    assert "no-such-host.invalid" in exchange.error.message


@pytest.mark.parametrize(
    ("status", "said", "kind", "party", "remedy"),
    [
        (401, "bad key", FailureKind.UNAUTHORIZED, Party.CALLER, 'set api_key = "env:NAME"'),
        (403, "no access", FailureKind.UNAUTHORIZED, Party.CALLER, "api_key"),
        (404, "The model `m` does not exist.", FailureKind.MODEL_NOT_FOUND, Party.CALLER, "/v1/models"),
        (404, "Not Found", FailureKind.NOT_FOUND, Party.CALLER, "base_url"),
        (405, "Method Not Allowed", FailureKind.NOT_FOUND, Party.CALLER, "base_url"),
        (400, "messages is wrong", FailureKind.REFUSED, Party.CALLER, "not accepted"),
        (413, "too large", FailureKind.REFUSED, Party.CALLER, "not accepted"),
        (422, "unprocessable", FailureKind.REFUSED, Party.CALLER, "not accepted"),
        (
            400,
            "Requested sample logprobs of 101, which is greater than max allowed: 100",
            FailureKind.CAPABILITY_REFUSED,
            Party.CALLER,
            "ringtrue inspect",
        ),
        (500, "boom", FailureKind.SERVER_ERROR, Party.PROVIDER, ""),
        (503, "overloaded", FailureKind.SERVER_ERROR, Party.PROVIDER, ""),
        (429, "slow down", FailureKind.RATE_LIMITED, Party.PROVIDER, "requests_per_second"),
    ],
)
async def test_a_status_says_what_is_wrong_and_who_has_to_act(
    status: int, said: str, kind: FailureKind, party: Party, remedy: str
) -> None:
    async with serve(error_script(status, said)) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert (exchange.error.kind, exchange.error.party, exchange.error.status) == (kind, party, status)
    assert f'HTTP {status}: "{said}"' in exchange.error.message
    assert remedy in exchange.error.message
    assert said.encode() in b"".join(chunk.data for chunk in exchange.wire)


async def test_a_redirect_is_not_followed_and_names_its_target_without_the_query() -> None:
    elsewhere = Script((), 307, {"location": "http://elsewhere.test/v1?token=abc"})
    async with serve(elsewhere) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.NOT_FOUND
    assert "http://elsewhere.test/v1" in exchange.error.message
    assert "abc" not in exchange.error.message
    assert len(server.seen) == 1


async def test_a_certificate_that_is_not_trusted_is_a_tls_failure_with_its_reason() -> None:
    async with (
        serve(json_script(chat_answer()), tls=_tls("127.0.0.1")) as server,
        endpoint_at(server.url) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.TLS
    assert "unable to get local issuer certificate" in exchange.error.message
    assert "SSL_CERT_FILE" in exchange.error.message
    assert server.seen == []


async def test_a_certificate_for_another_host_is_a_tls_failure(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    bundle = f"{tmp_path}/ca.pem"
    authority.cert_pem.write_to_path(bundle)
    monkeypatch.setenv("SSL_CERT_FILE", bundle)
    tls = _tls("other.test", authority)
    async with (
        serve(json_script(chat_answer()), tls=tls) as server,
        endpoint_at(server.url) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.TLS
    assert "IP address mismatch" in exchange.error.message


async def test_an_untrusted_certificate_is_accepted_when_verification_is_off() -> None:
    async with (
        serve(json_script(chat_answer("fine")), tls=_tls("127.0.0.1")) as server,
        endpoint_at(server.url, verify_tls=False) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
    assert (exchange.error, exchange.text) == (None, "fine")


async def test_a_server_that_answers_tls_with_plain_text_is_a_tls_failure() -> None:
    plain = Script((b"HTTP/1.1 400 Bad Request\r\n\r\n",), raw=True, greets=True)
    async with serve(plain) as server, endpoint_at(server.url.replace("http:", "https:")) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.TLS


async def test_a_tls_handshake_that_is_never_answered_is_a_connect_timeout() -> None:
    silent = Script((Act.HANG,), raw=True, greets=True)
    async with serve(silent) as server:
        address = server.url.replace("http:", "https:")
        async with endpoint_at(address, limits={"connect_timeout": 0.05}) as endpoint:
            exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.CONNECT_TIMEOUT
    assert "no connection within 0.05 s" in exchange.error.message


async def test_silence_before_the_first_byte_is_a_first_byte_timeout() -> None:
    limits = {"first_byte_timeout": 0.05, "connect_timeout": 0.05}
    async with serve(Script((Act.HANG,))) as server, endpoint_at(server.url, limits=limits) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.FIRST_BYTE_TIMEOUT
    assert "no byte of an answer within 0.05 s" in exchange.error.message
    assert "limits.first_byte_timeout" in exchange.error.message


async def test_silence_after_the_first_byte_is_a_read_timeout_and_keeps_what_came() -> None:
    script = stream_script(chat_delta("Hel"), chat_delta("lo"), then=(Act.HANG,), done=False)
    limits = {"read_timeout": 0.1}
    async with serve(script) as server, endpoint_at(server.url, limits=limits) as endpoint:
        exchange = await endpoint.send(HELLO_STREAMED)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.READ_TIMEOUT
    assert "nothing for 0.1 s" in exchange.error.message
    assert exchange.text == "Hello"
    assert exchange.finish_reason is None


async def test_a_stream_that_never_falls_silent_ends_at_the_total_timeout() -> None:
    script = stream_script(b": ping\n\n", then=(Act.HANG,), done=False)
    limits = {"total_timeout": 0.1, "read_timeout": 5.0}
    async with serve(script) as server, endpoint_at(server.url, limits=limits) as endpoint:
        exchange = await endpoint.send(HELLO_STREAMED)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.READ_TIMEOUT
    assert "no end after 0.1 s" in exchange.error.message


async def test_a_hanging_connection_after_done_does_not_spoil_a_whole_answer() -> None:
    script = stream_script(chat_delta("Hello"), chat_delta(None, "stop"), then=(Act.HANG,))
    limits = {"read_timeout": 0.05}
    async with serve(script) as server, endpoint_at(server.url, limits=limits) as endpoint:
        exchange = await endpoint.send(HELLO_STREAMED)
    assert exchange.error is None
    assert (exchange.text, exchange.finish_reason) == ("Hello", "stop")


@pytest.mark.parametrize("end", [Act.CLOSE, Act.RESET])
async def test_a_stream_whose_connection_breaks_is_truncated_and_keeps_what_came(end: Act) -> None:
    script = stream_script(chat_delta("Hel"), chat_delta("lo"), then=(end,), done=False)
    async with serve(script) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO_STREAMED)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.TRUNCATED
    assert exchange.error.party is Party.PROVIDER
    # A reset may overtake data in the receiver's socket; a close may not.
    assert exchange.text == "Hello" if end is Act.CLOSE else "Hello".startswith(exchange.text)


async def test_a_stream_that_ends_cleanly_without_finish_reason_and_done_is_truncated() -> None:
    async with (
        serve(stream_script(chat_delta("Hello"), done=False)) as server,
        endpoint_at(server.url) as endpoint,
    ):
        exchange = await endpoint.send(HELLO_STREAMED)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.TRUNCATED
    assert (exchange.text, exchange.finish_reason) == ("Hello", None)


async def test_a_stream_cut_inside_an_event_is_truncated() -> None:
    script = stream_script(chat_delta("Hello"), b'data: {"choices": [{"ind', done=False)
    async with serve(script) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO_STREAMED)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.TRUNCATED
    assert exchange.text == "Hello"


async def test_a_plain_body_shorter_than_announced_is_truncated() -> None:
    raw = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"choices": ['
    async with serve(Script((raw,), raw=True)) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.TRUNCATED
    assert exchange.wire[0].data == b'{"choices": ['


async def test_a_connection_closed_before_any_byte_is_unreachable() -> None:
    async with serve(Script((Act.CLOSE,), raw=True)) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.UNREACHABLE
    assert "broke before an answer" in exchange.error.message


async def test_a_server_that_does_not_speak_http_is_named_so() -> None:
    async with (
        serve(Script((b"SSH-2.0-OpenSSH_9.2\r\n\r\n",), raw=True)) as server,
        endpoint_at(server.url) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.BAD_SHAPE
    assert "not HTTP" in exchange.error.message


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (PAGE, FailureKind.HTML, 'a web page came where JSON was due ("Welcome to nginx!")'),
        (b'{"choices": [', FailureKind.NOT_JSON, "the body is not JSON"),
        (b"", FailureKind.NOT_JSON, "the body is empty"),
        (b"[]", FailureKind.BAD_SHAPE, "a JSON list, not an object"),
        (b"{}", FailureKind.BAD_SHAPE, "no choices"),
        (b'{"choices": []}', FailureKind.BAD_SHAPE, "no choices"),
        (b'{"choices": ["x"]}', FailureKind.BAD_SHAPE, "a choice is not an object"),
        (b'{"error": {"message": "CUDA error"}}', FailureKind.SERVER_ERROR, "CUDA error"),
    ],
)
async def test_a_body_that_is_no_answer_says_what_it_is(body: bytes, kind: FailureKind, said: str) -> None:
    async with serve(json_script(body)) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert (exchange.error.kind, exchange.error.party) == (kind, Party.PROVIDER)
    assert exchange.error.status == 200
    assert said in exchange.error.message
    assert b"".join(chunk.data for chunk in exchange.wire) == body


async def test_an_error_page_of_a_gateway_is_a_server_error_that_mentions_the_page() -> None:
    async with (
        serve(Script((PAGE,), 502, {"content-type": "text/html"})) as server,
        endpoint_at(server.url) as endpoint,
    ):
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.SERVER_ERROR
    assert "HTTP 502 with a web page" in exchange.error.message


async def test_nan_in_the_logprobs_is_said_and_the_rest_of_the_answer_kept() -> None:
    body = (
        b'{"model": "m", "choices": [{"index": 0, "message": {"content": "!"}, "finish_reason": "stop", '
        b'"logprobs": {"content": [{"token": "!", "logprob": NaN, "bytes": [33], "top_logprobs": []}]}}]}'
    )
    async with serve(json_script(body)) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.NOT_JSON
    assert "NaN" in exchange.error.message
    assert exchange.text == "!"
    assert exchange.top_logprobs is not None
    assert exchange.top_logprobs[0].sampled.logprob != exchange.top_logprobs[0].sampled.logprob


async def test_sentinels_and_a_wrong_model_name_arrive_as_sent_for_the_judges() -> None:
    entry = {"token": "a", "logprob": -9999.0, "bytes": [97], "top_logprobs": []}
    answer = chat_answer(model="another-model")
    answer["choices"][0]["logprobs"] = {"content": [entry]}
    async with serve(json_script(answer)) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert exchange.error is None
    assert exchange.model == "another-model"
    assert exchange.top_logprobs is not None
    assert exchange.top_logprobs[0].sampled.logprob == -9999.0


async def test_an_answer_without_logprobs_has_none_and_is_no_failure() -> None:
    async with serve(json_script(chat_answer())) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO)
    assert (exchange.error, exchange.top_logprobs) == (None, None)


async def test_an_error_inside_a_stream_is_a_server_error_and_keeps_what_came() -> None:
    script = stream_script(chat_delta("Hel"), {"error": {"message": "worker died", "code": 500}})
    async with serve(script) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO_STREAMED)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.SERVER_ERROR
    assert "worker died" in exchange.error.message
    assert exchange.text == "Hel"


async def test_a_broken_event_inside_a_stream_is_not_json_and_keeps_the_rest() -> None:
    script = stream_script(chat_delta("Hel"), b"data: {oops\n\n", chat_delta("lo", "stop"))
    async with serve(script) as server, endpoint_at(server.url) as endpoint:
        exchange = await endpoint.send(HELLO_STREAMED)
    assert exchange.error is not None
    assert exchange.error.kind is FailureKind.NOT_JSON
    assert (exchange.text, exchange.finish_reason) == ("Hello", "stop")


def _tls(host: str, authority: trustme.CA | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (authority or trustme.CA()).issue_cert(host).configure_cert(context)
    return context
