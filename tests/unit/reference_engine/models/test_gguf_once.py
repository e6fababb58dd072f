import gguf

from reference_engine.models.embedded import embedded_file
from reference_engine.models.gguf_once import read_once


def test_a_file_is_parsed_once_while_a_model_loads_and_as_ever_afterwards() -> None:
    before = gguf.GGUFReader
    with read_once():
        assert gguf.GGUFReader(embedded_file()) is gguf.GGUFReader(str(embedded_file()))
        assert gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2) is gguf.get_tensor_name_map(
            gguf.MODEL_ARCH.LLAMA, 2
        )
    assert gguf.GGUFReader is before
