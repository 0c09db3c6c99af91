# Everything carom needs beyond Python and make lands in .venv.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
COUNT ?= 200
SEED ?= 0
# with it set, every process of the tests would compile its modules anew
export PYTHONDONTWRITEBYTECODE =
DEVICE_TESTS := tests/loop/test_loop.py tests/loop/test_batch.py tests/methods/test_orders.py tests/contact/test_solvers.py \
	tests/tableaux/test_families.py

.PHONY: demo test device slow fuzz lint format bench docs clean

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.test: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

.venv/.bench: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@

.venv/.docs: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@

demo: .venv/.installed
	$(BIN)/carom run examples/scenarios/cradle.toml --out out

test: .venv/.test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not slow"

# on a machine with an accelerator, with the Python that is there
device:
	XLA_FLAGS= PYTHONPATH=src $(PYTHON) -m pytest -m "not slow" $(DEVICE_TESTS)

slow: .venv/.test
	XLA_FLAGS= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m slow

fuzz: .venv/.test
	$(BIN)/python -m fuzz --count $(COUNT) --seed $(SEED)

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: .venv/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.bench
	$(BIN)/python benchmarks/run.py

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf .venv out dist build site .pytest_cache .hypothesis .ruff_cache
