# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Both set up the virtual environment in .venv by themselves, once.

PYTHON ?= python3
BIN := .venv/bin
PAGE := src/oneofmany/playground/page

.PHONY: demo test test-slow lint hooks docs results playground kernel benchmark wheel clean

demo: .venv/installed
	$(BIN)/oneofmany demo

test: lint
	$(BIN)/python -m pytest -n 2

test-slow: .venv/installed
	$(BIN)/python -m pytest -n 2 -m "slow or not slow"

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

hooks: .venv/installed
	$(BIN)/pre-commit install

docs: .venv/installed
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build
	@echo "open docs/_build/index.html"

results: .venv/installed
	$(BIN)/python -m reproduction

# Golden vectors and page of the playground, from the bundled weights.
playground: .venv/installed
	$(BIN)/python -m reproduction.playground

# The playground's kernel, from its source: needs clang and lld (tested: version 14).
kernel:
	clang --target=wasm32 -O3 -msimd128 -ffreestanding -nostdlib -fvisibility=hidden \
		-Wl,--no-entry -Wl,--export-dynamic -Wl,--export=__heap_base -Wl,--import-memory -Wl,--strip-all \
		-o $(PAGE)/kernel.wasm $(PAGE)/kernel.c
	chmod 644 $(PAGE)/kernel.wasm

benchmark: .venv/installed
	$(BIN)/python benchmarks/enumeration.py
	$(BIN)/python benchmarks/objectives.py

wheel: .venv/installed
	$(BIN)/python -m hatchling build -d dist

clean:
	rm -rf .venv demo build dist docs/_build docs/report.html

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "oneofmany needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
