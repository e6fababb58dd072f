import pytest

from evals.tokens.endpoints import EndpointOrder
from ringtrue.errors import UsageError

CONFIG = """
[reference]
model = "other"

[[endpoints]]
name = "acme"
base_url = "https://acme.example/v1"
model = "m"
dialect = "vllm"
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "ringtrue.toml"
    path.write_text(CONFIG, encoding="utf-8")
    return path


def test_a_url_is_an_endpoint_whose_model_may_be_left_open():
    spec = EndpointOrder("http://localhost:1", api_key="env:KEY").spec()

    assert (spec.base_url, spec.model, spec.dialect, spec.api_key) == (
        "http://localhost:1",
        "",
        "auto",
        "env:KEY",
    )


def test_an_endpoint_of_the_configuration_brings_its_own_reference(config):
    order = EndpointOrder(endpoint="acme", config=config)

    assert (order.spec().model, order.spec().dialect, order.reference()) == ("m", "vllm", "other")


def test_the_embedded_model_is_promised_where_no_other_is():
    assert EndpointOrder("http://localhost:1").reference() == "smollm2-135m"


def test_none_two_and_unknown_endpoints_are_refused(config):
    with pytest.raises(UsageError, match="names no endpoint"):
        EndpointOrder().spec()
    with pytest.raises(UsageError, match="two endpoints"):
        EndpointOrder("http://localhost:1", endpoint="acme", config=config).spec()
    with pytest.raises(UsageError, match="Did you mean acme"):
        EndpointOrder(endpoint="acne", config=config).spec()
