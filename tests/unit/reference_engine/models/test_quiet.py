import subprocess
import sys

from transformers.utils import import_utils
from transformers.utils import logging as transformers_logging

from reference_engine.models.quiet import quiet_transformers


def test_a_first_load_imports_no_torchao_and_writes_nothing(small_model):
    script = (
        "import sys\n"
        "from reference_engine.engine import Engine\n"
        "with Engine(device='cpu') as engine:\n"
        f"    engine.load({str(small_model)!r})\n"
        "sys.exit('torchao' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_is_quiet_while_loading_is_as_before_afterwards():
    before = (
        import_utils.is_torchao_available,
        transformers_logging.get_verbosity(),
        transformers_logging.is_progress_bar_enabled(),
    )
    with quiet_transformers():
        assert not import_utils.is_torchao_available()
        assert not transformers_logging.is_progress_bar_enabled()
    after = (
        import_utils.is_torchao_available,
        transformers_logging.get_verbosity(),
        transformers_logging.is_progress_bar_enabled(),
    )
    assert before == after
