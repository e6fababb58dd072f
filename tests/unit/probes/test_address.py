from __future__ import annotations

import pytest

from probes.address import Address, parse_address
from ringtrue.errors import ConfigError


@pytest.mark.parametrize(
    ("base_url", "address"),
    [
        ("http://h:1", Address("http://h:1", "http://h:1/v1")),
        ("https://h/v1/", Address("https://h", "https://h/v1")),
        ("https://h/api/v1", Address("https://h/api", "https://h/api/v1")),
        ("https://h/v1beta/openai", Address("https://h/v1beta/openai", "https://h/v1beta/openai")),
        ("http://[::1]:8000/v1", Address("http://[::1]:8000", "http://[::1]:8000/v1")),
    ],
)
def test_the_roots_are_found_from_what_people_write(base_url: str, address: Address) -> None:
    assert parse_address(base_url) == address


def test_routes_of_the_api_and_of_the_server_are_told_apart() -> None:
    address = parse_address("https://h/api/v1")
    assert address.url("/v1/models") == "https://h/api/v1/models"
    assert address.url("/tokenize") == "https://h/api/tokenize"
    assert address.shown("/v1/models") == "h/api/v1/models"


@pytest.mark.parametrize(
    "base_url", ["", "h:80", "ftp://h/", "https://", "http://h:x/", "http://[::1", "http://h:0"]
)
def test_what_is_no_http_url_is_refused(base_url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        parse_address(base_url)


@pytest.mark.parametrize(
    "base_url", ["https://u:sesame@h/v1", "https://h/v1?key=sesame", "https://h/v1#sesame"]
)
def test_a_url_that_carries_a_key_is_refused_and_not_repeated(base_url: str) -> None:
    with pytest.raises(ConfigError, match="env:NAME") as caught:
        parse_address(base_url)
    assert "sesame" not in str(caught.value)
