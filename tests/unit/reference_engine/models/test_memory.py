import pytest
import torch

from reference_engine.engine import Engine
from reference_engine.models.memory import enough_memory
from ringtrue.errors import MeasureError


def _real_failure():
    torch.empty(2**50)


def _on_a_gpu():
    raise torch.OutOfMemoryError("CUDA out of memory")


def _in_python():
    raise MemoryError


@pytest.mark.parametrize(
    ("fail", "words"), [(_real_failure, "main"), (_on_a_gpu, "GPU"), (_in_python, "main")]
)
def test_a_failed_allocation_names_the_model_and_what_to_do(fail, words):
    remedy = rf"m@int4: {words} memory ran out.*take a smaller model"
    with pytest.raises(MeasureError, match=remedy), enough_memory("m@int4"):
        fail()


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match="size mismatch"), enough_memory("m"):
        raise RuntimeError("size mismatch")


def test_a_model_that_does_not_fit_says_so(small_model, monkeypatch):
    from reference_engine.models import loading  # noqa: PLC0415

    monkeypatch.setattr(loading, "read_model", lambda *_: _real_failure())
    with Engine(device="cpu") as engine, pytest.raises(MeasureError, match="main memory ran out"):
        engine.load(str(small_model))
