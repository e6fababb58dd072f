from __future__ import annotations

import pickle
from urllib.parse import quote

import pytest

from ringtrue.errors import ConfigError, SecretError
from ringtrue.secrets import Secret, resolve_secret

KEY = 'sk-"planted"/0123456789'


def secret(value: str = KEY) -> Secret:
    return Secret(value, name="PLANTED")


def test_a_secret_shows_its_name_and_not_its_value() -> None:
    shown = f"{secret()} {secret()!r} {[secret()]} {{{secret()}}}"
    assert KEY not in shown
    assert shown.startswith("Secret(env:PLANTED)")
    assert secret().reveal() == KEY


def test_a_secret_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret())


SPELLINGS = {
    "plain": KEY,
    "JSON": KEY.replace('"', '\\"'),
    "JSON of PHP": KEY.replace('"', '\\"').replace("/", "\\/"),
    "JSON in code points": "".join(f"\\u{ord(character):04X}" for character in KEY),
    "URL": quote(KEY, safe=""),
    "path of a URL": quote(KEY).lower(),
    "HTML": KEY.replace('"', "&quot;"),
}


@pytest.mark.parametrize("form", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_is_masked_and_lengths_stay(form: str) -> None:
    text = f"key={form}; again {form}"
    masked = secret().mask_text(text)
    assert masked == f"key={'*' * len(form)}; again {'*' * len(form)}"
    assert secret().mask(text.encode()) == masked.encode()


def test_a_placeholder_key_does_not_blank_ordinary_words() -> None:
    assert secret("EMPTY").mask_text("EMPTY answer") == "EMPTY answer"


def test_a_reference_is_read_from_the_environment_without_its_newline() -> None:
    found = resolve_secret("env:PLANTED", {"PLANTED": "sk-0123456789\n"})
    assert found is not None
    assert (found.reveal(), found.name) == ("sk-0123456789", "PLANTED")
    assert resolve_secret(None, {}) is None


@pytest.mark.parametrize("environment", [{}, {"PLANTED": ""}, {"PLANTED": "  "}])
def test_a_missing_variable_is_named_with_its_remedy(environment: dict[str, str]) -> None:
    with pytest.raises(SecretError, match=r"variable PLANTED is not set.*export PLANTED="):
        resolve_secret("env:PLANTED", environment)


@pytest.mark.parametrize("literal", ["sk-0123456789", "env:", "file:/etc/key"])
def test_a_literal_key_is_refused_and_not_repeated(literal: str) -> None:
    with pytest.raises(ConfigError, match="env:NAME") as caught:
        resolve_secret(literal, {})
    assert literal not in str(caught.value).replace("env:NAME", "")


@pytest.mark.parametrize("value", ["two words", "line\nbreak", "schlüssel"])
def test_a_value_that_no_header_may_carry_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(SecretError, match="no HTTP header may carry") as caught:
        resolve_secret("env:PLANTED", {"PLANTED": value})
    assert value not in str(caught.value)
