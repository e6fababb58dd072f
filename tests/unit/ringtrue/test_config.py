from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import ValidationError

from ringtrue.config import EXAMPLE, EndpointSettings, LimitSettings, Settings, load_settings, settings_from
from ringtrue.errors import ConfigError
from ringtrue.records import EndpointSpec, Limits, Role

ENDPOINT = {"name": "acme", "base_url": "http://127.0.0.1:8000/v1", "model": "m"}


@pytest.fixture(autouse=True)
def _no_variables_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RINGTRUE_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ringtrue.toml"


def read(path: Path, text: str) -> Settings:
    path.write_text(text)
    return load_settings(path)


def problem(path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(path, text)
    assert caught.value.exit_code == 2
    return str(caught.value).replace(str(path), "ringtrue.toml")


def with_endpoint(**fields: object) -> dict[str, object]:
    return {"endpoints": [{**ENDPOINT, **fields}]}


def refused(content: dict[str, object]) -> str:
    with pytest.raises(ConfigError) as caught:
        settings_from(content, source="ringtrue.toml")
    return str(caught.value)


def test_the_example_is_accepted_and_fills_in_the_defaults(path: Path) -> None:
    settings = read(path, EXAMPLE)
    assert settings.store.url == "sqlite:///ringtrue.db"
    assert settings.probe.buckets == ((32, 64), (128, 24), (512, 16), (2048, 4))
    assert settings.endpoints[0].api_key == "env:ACME_API_KEY"


def test_an_endpoint_becomes_the_record_with_all_its_fields() -> None:
    settings = settings_from(
        with_endpoint(
            dialect="vllm",
            role="replica",
            context_length=8192,
            region="eu",
            price_in=0.1,
            price_out=0.2,
            api_key="env:KEY",
            verify_tls=False,
            limits={"max_in_flight": 9, "read_timeout": 5},
        ),
        source="test",
    )
    assert settings.endpoints[0].to_spec() == EndpointSpec(
        "acme",
        "http://127.0.0.1:8000/v1",
        "m",
        dialect="vllm",
        role=Role.REPLICA,
        context_length=8192,
        region="eu",
        price_in=0.1,
        price_out=0.2,
        api_key="env:KEY",
        verify_tls=False,
        limits=Limits(max_in_flight=9, read_timeout=5.0),
    )


def test_the_file_offers_every_field_of_the_records_with_the_same_defaults() -> None:
    assert set(EndpointSettings.model_fields) == {field.name for field in fields(EndpointSpec)}
    assert Limits(**LimitSettings().model_dump()) == Limits()
    assert EndpointSettings(**ENDPOINT).to_spec() == EndpointSpec(**ENDPOINT)


def test_settings_cannot_be_changed() -> None:
    settings = settings_from(with_endpoint(), source="test")
    with pytest.raises(ValidationError):
        settings.probe.top_k = 5  # type: ignore[misc] - that it is refused is the subject


def test_a_variable_goes_before_the_file_and_leaves_the_rest_of_its_section(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGTRUE_PROBE__TOP_K", "5")
    settings = read(path, f"{EXAMPLE}\n[probe]\ntop_k = 7\nseed = 3")
    assert (settings.probe.top_k, settings.probe.seed) == (5, 3)


def test_a_misspelt_key_names_file_and_place_and_the_likely_key(path: Path) -> None:
    text = f'{EXAMPLE}\n[[endpoints]]\nname = "b"\nmodel = "m"\nbase_url = "http://h/v1"\nregoin = "eu"'
    assert problem(path, text) == "ringtrue.toml: endpoints[1].regoin: unknown key, did you mean region?"


def test_a_misspelt_key_comes_before_the_one_that_is_therefore_missing(path: Path) -> None:
    text = EXAMPLE.replace("base_url", "base_urll")
    assert problem(path, text) == (
        "ringtrue.toml: endpoints[0].base_urll: unknown key, did you mean base_url?; "
        "ringtrue.toml: endpoints[0].base_url: is missing"
    )


def test_a_key_like_no_other_lists_the_known_ones(path: Path) -> None:
    assert "budget.xyz: unknown key; known are max_dollars, max_requests, max_tokens" in problem(
        path, f"{EXAMPLE}\n[budget]\nxyz = 1"
    )


def test_a_misspelt_section_and_a_misspelt_limit_are_found(path: Path) -> None:
    text = f"{EXAMPLE}\n[endpoints.limits]\nmax_in_flght = 3\n[prob]\nx = 1"
    said = problem(path, text)
    assert "endpoints[0].limits.max_in_flght: unknown key, did you mean max_in_flight?" in said
    assert "prob: unknown key, did you mean probe?" in said


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("RINGTRUE_PROBE__TOPK", "RINGTRUE_PROBE__TOPK: unknown key, did you mean top_k?"),
        ("RINGTRUE_PROOBE__TOP_K", "RINGTRUE_PROOBE__TOP_K: unknown section, did you mean PROBE?"),
        ("RINGTRUE_PROBE__TOP_K", "RINGTRUE_PROBE__TOP_K: should be a valid integer"),
        ("RINGTRUE_ENDPOINTS", "JSON"),
    ],
)
def test_a_wrong_variable_is_named_itself(monkeypatch: pytest.MonkeyPatch, variable: str, said: str) -> None:
    monkeypatch.setenv(variable, "ten")
    assert said in refused(with_endpoint())


def test_a_variable_that_is_no_setting_may_have_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_ACME_KEY", "x")
    assert settings_from(with_endpoint(), source="test").endpoints[0].name == "acme"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "endpoints: is missing"),
        ({"endpoints": []}, "no endpoint is configured"),
        ({"endpoints": [ENDPOINT, ENDPOINT]}, "two endpoints are named 'acme'"),
        (with_endpoint(base_url="api.example.com"), "endpoints[0].base_url: not a URL"),
        (with_endpoint(base_url="ftp://h/v1"), "endpoints[0].base_url: not a URL"),
        (with_endpoint(base_url="http://h:port/v1"), "endpoints[0].base_url: not a URL"),
        (with_endpoint(base_url="http://h/v1?key=1"), "a key belongs in api_key"),
        (with_endpoint(dialect="openia"), "endpoints[0].dialect: should be 'openai', 'vllm', 'sglang'"),
        (with_endpoint(role="boss"), "endpoints[0].role: should be 'reference', 'provider'"),
        (with_endpoint(limits={"max_in_flight": 0}), "endpoints[0].limits.max_in_flight: should be greater"),
        (
            {**with_endpoint(), "probe": {"buckets": [[64, 4], [32, 4]]}},
            "probe.buckets: the lengths must increase",
        ),
        (
            {**with_endpoint(), "probe": {"buckets": [[64, 4], [64, 4]]}},
            "probe.buckets: the lengths must increase",
        ),
        ({**with_endpoint(), "probe": {"buckets": [[64, 0]]}}, "both at least 1"),
        (
            {**with_endpoint(), "probe": {"languages": ["json", "json"]}},
            "probe.languages: a value is listed twice",
        ),
        ({**with_endpoint(), "store": {"url": "mysql://h/d"}}, "store.url: not a store URL"),
        ({**with_endpoint(), "store": {"url": "sqlite:///:memory:"}}, "store.url: names no file"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(content: dict[str, object], said: str) -> None:
    assert said in refused(content)


@pytest.mark.parametrize(
    "content",
    [
        with_endpoint(api_key="sk-planted"),
        with_endpoint(api_key="env:sk-planted"),
        with_endpoint(base_url="http://u:sk-planted@h/v1"),
        with_endpoint(apikey="sk-planted"),
        with_endpoint(region={"x": "sk-planted"}),
    ],
)
def test_a_secret_in_the_file_is_refused_and_never_repeated(content: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_from(content, source="ringtrue.toml")
    shown = f"{caught.value!s} {caught.value!r} {caught.value.__cause__!s} {caught.value.__context__!s}"
    assert "endpoints[0]" in shown
    assert "sk-planted" not in shown


def test_the_stores_password_may_come_by_variable_but_not_by_file_and_is_not_shown(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://u:hunter2@db/ringtrue"
    said = problem(path, f'{EXAMPLE}\n[store]\nurl = "{url}"')
    assert "store.url: holds a password. Leave it out and set PGPASSWORD" in said
    assert "hunter2" not in said

    monkeypatch.setenv("RINGTRUE_STORE__URL", url)
    settings = read(path, EXAMPLE)
    assert settings.store.url == url
    assert "hunter2" not in repr(settings)


def test_a_missing_file_offers_the_demo_and_an_example(path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(path)
    assert "no such file" in str(caught.value)
    assert "ringtrue demo" in str(caught.value)
    assert "[[endpoints]]" in str(caught.value)


def test_a_file_that_is_no_toml_names_line_and_column(path: Path) -> None:
    assert "ringtrue.toml: not TOML: " in problem(path, "[store\n")
    assert "line 1" in problem(path, "[store\n")


def test_a_file_that_is_no_text_is_refused(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(path)


def test_false_alarms_a_year_are_more_than_none_and_no_more_than_a_hundred(tmp_path: Path) -> None:
    path = tmp_path / "ringtrue.toml"
    path.write_text(EXAMPLE)
    assert load_settings(path).alarms.false_alarms_per_year == 1.0
    for refused in ("0", "101"):
        text = f"{EXAMPLE}\n[alarms]\nfalse_alarms_per_year = {refused}"
        assert "alarms.false_alarms_per_year" in problem(path, text)
