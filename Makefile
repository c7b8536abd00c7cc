# Everything a newcomer needs: a machine with Python 3.11 or newer, and make.
PYTHON ?= python3
BIN := .venv/bin
# One process a core: compiling and drawing shapes are work for one. One that is done takes work of others.
PYTEST := $(BIN)/python -m pytest -q --numprocesses=auto --maxprocesses=8 --dist=worksteal
# What needs more than the extra `test`: each has a target of its own.
OTHERS := --ignore=tests/torch --ignore=tests/ray --ignore=tests/slurm

.PHONY: demo test test-target test-slow test-torch test-ray test-slurm soak attack check format bench wheel clean

.venv/base: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/test: .venv/base
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@

.venv/check: .venv/test
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[check]"
	@touch $@

.venv/torch: .venv/test
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	@touch $@

.venv/ray: .venv/test
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[ray]"
	@touch $@

# Torch first: with it in place, nothing asks for a build with a GPU runtime.
.venv/bench: .venv/base
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0 || true
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[bench]" || true
	@touch $@

demo: .venv/base
	$(BIN)/python examples/digits.py

test: .venv/test
	$(PYTEST) -m "not slow" $(OTHERS)

# What depends on the instructions of a machine: `WEFT_TARGET=x86-64-v3 make test-target`.
TARGET_TESTS := $(addprefix tests/,codegen eager/record/test_same_bits.py library ops passes scipy \
	test_accuracy.py test_catalogue.py::test_compiled_equals_reference \
	test_catalogue.py::test_compiled_gradient_equals_interpreted test_drawn_graphs.py \
	test_exact.py test_extremes.py test_mixed_precision.py)

test-target: .venv/test
	$(PYTEST) -m "not slow" $(TARGET_TESTS)

# Jobs of several processes, attacks, suites of other projects: what takes longest. The files by
# their text: collecting all tests takes half a minute.
SLOW = $(shell grep -rl --include='test_*.py' mark.slow tests)

test-slow: .venv/test
	$(PYTEST) -m slow $(filter-out tests/torch/% tests/ray/% tests/slurm/%,$(SLOW))

test-torch: .venv/torch
	$(PYTEST) tests/torch

# Clusters on Ray; as root also on two nodes in network namespaces.
test-ray: .venv/ray
	$(BIN)/python -m pytest -q tests/ray

# Clusters under Slurm's own daemons: needs root, and apt-get install slurm-wlm munge.
test-slurm: .venv/test
	$(BIN)/python -m pytest -q tests/slurm

# Tests of properties draw other cases each time; `make test` always a third as many, the same ones.
soak: .venv/torch
	$(PYTEST) --hypothesis-profile=fresh --ignore=tests/ray --ignore=tests/slurm

# Hostile calls, files, kills, signals, caches, limits, drawn programs: five hours on two cores.
attack: .venv/torch
	$(BIN)/python -m tools.attack --folder build/attack

check: .venv/check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --no-cache .  # a cache keeps what was local when it was made
	$(BIN)/pyright
	$(BIN)/python tests/tools/check_typing.py

format: .venv/check
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/bench
	$(BIN)/python -m bench

# With the kernel library of every target; `build/wheel`.
wheel: .venv/base
	$(BIN)/python -m tools.wheel

clean:
	rm -rf .venv build .pytest_cache .ruff_cache .hypothesis *.egg-info
