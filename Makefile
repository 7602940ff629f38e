# Two commands on a fresh machine: `make bench` and `make test`.  Only a POSIX shell, make and some Python >= 3.9 are
# assumed; the rest is made on the first run, below this folder and in gilscope's data and cache folders.

ARGS =
VENV = .venv/bin

# The first Python that is new enough to run the set-up.
BOOTSTRAP = set -e; for python in python3 python python3.14 python3.13 python3.12 python3.11 python3.10 python3.9; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then found=$$python; break; fi; done; \
	if [ -z "$$found" ]; then echo "no Python 3.9 or newer found: install one (Debian: apt-get install python3)" >&2; \
	exit 2; fi; $$found toolkit/make_venv.py --groups

# $(call PYTEST,environment,name of the step,marks,options): first the tests that share the machine, then those that need
# it for themselves, if there are any (5).  Many tests wait for a process most of their time: three at once keep two cores
# busy.  ARGS="-n 0" runs one after the other.  REPORTS is a folder for what `.ci/summary.py` reads.
REPORTS =
REPORT = $(if $(REPORTS),--junitxml=$(REPORTS)/$(1).xml)
PYTEST = { $(1)/bin/python -m pytest -m "$(3) and not quiet" -n 3 --dist worksteal $(call REPORT,$(2)) $(4) $(ARGS) && { \
	$(1)/bin/python -m pytest -m "$(3) and quiet" $(call REPORT,$(2)-quiet) $(4) $(ARGS) -n 0 || [ $$? = 5 ]; }; }

# What the oldest Python at hand runs, too, as the Python that runs gilscope: all commands, without the other builds.
OLDEST_TESTS = tests/test_*.py tests/builds tests/commands tests/gil tests/measure tests/report tests/stats \
	tests/evaluate/probes tests/evaluate/requirements tests/evaluate/test_answer.py \
	tests/evaluate/test_next_steps.py tests/evaluate/views tests/race/reports tests/race/rewriting

.PHONY: help setup lock pair test test-all test-slow test-oldest test-packaging test-real nightly sanitize bench wheel \
	docs lint type clean

help:
	@echo 'make bench [ARGS=...]  set up, get a pair of builds if there is none, measure (gilscope run --quick)'
	@echo 'make test [ARGS=...]   set up, run the fast tests, on a build with the GIL and one without'
	@echo 'make test-all          the same, then the slow ones, then many with the oldest Python; ARGS=... likewise'
	@echo 'make test-packaging    wheels, every command without a compiler, all workflow steps; 20 minutes'
	@echo 'make test-real         projects of the registry under the race checker; half an hour, with network'
	@echo 'make nightly           all tests on all builds, new random cases, sanitizers; hours; SEED=N repeats them'
	@echo 'make sanitize          the C code in other processes under AddressSanitizer and UBSan (gcc)'
	@echo 'make setup             make .venv with everything a developer needs'
	@echo 'make lock              lock the newest versions of all that set-up installs, in constraints.txt; then make test'
	@echo 'make pair              get a GIL and a free-threaded build of one source, if there is none'
	@echo 'make wheel             the sdist, and a repaired and checked wheel for each build at hand, in dist/'
	@echo 'make docs              docs/ as a site in docs/_build/html; every warning is an error'
	@echo 'make lint              ruff'
	@echo 'make type              mypy'
	@echo 'make clean             remove .venv and what tools left; builds and results stay'

setup:
	@$(BOOTSTRAP) dev

# One file for all Pythons that run gilscope: versions with markers.  Users get the lower bounds of pyproject.toml.
# uv goes into a folder of its own: beside gilscope it would become the installer that gilscope takes.
lock:
	@$(BOOTSTRAP) ''
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(VENV)/python -m pip install -q --target "$$folder" uv && \
	"$$folder/bin/uv" pip compile pyproject.toml --group dev --group release --group publish --all-extras --universal --python-version 3.12 \
		--upgrade --no-annotate --custom-compile-command 'make lock' --quiet --output-file constraints.txt && \
	git diff --stat constraints.txt

pair:
	@$(BOOTSTRAP) ''
	@$(VENV)/gilscope builds --json | $(VENV)/python -c 'import json, sys; \
	pair = json.load(sys.stdin)["default_pair"]; sys.exit(pair is None or bool(pair["mismatches"]))' \
	|| $(VENV)/gilscope builds install

test:
	@$(BOOTSTRAP) test,workloads
	@$(call PYTEST,.venv,fast,not slow and not nightly)

test-slow:
	@$(BOOTSTRAP) test,workloads,browser,release
	@$(call PYTEST,.venv,slow,slow and not nightly)

test-all: test test-slow test-oldest

test-oldest:
	@$(BOOTSTRAP) test,workloads --oldest
	@if [ -x .venv-oldest/bin/python ]; then $(call PYTEST,.venv-oldest,oldest,not slow and not nightly and not newest,\
		--builds host $(if $(findstring tests,$(ARGS)),,$(OLDEST_TESTS))); fi

test-packaging:
	@$(BOOTSTRAP) test,workloads,release
	@$(call PYTEST,.venv,packaging,(slow or nightly),--builds all tests/packaging)

# Projects of the registry under the race checker; `make nightly` does it, too.
test-real:
	@$(BOOTSTRAP) test,workloads
	@$(VENV)/python -m pytest -m nightly $(call REPORT,real) $(ARGS) tests/real_projects

# What takes long, or lets chance choose: all builds at hand, new seeds, sanitizers, all wheels.  SEED=N repeats a choice.
# Each part runs, whatever the one before it found.
nightly:
	@$(BOOTSTRAP) test,workloads,browser,release
	@seed=$${SEED:-$$($(VENV)/python -c 'import random; print(random.SystemRandom().randrange(10**6))')}; failed=0; \
	echo "chance begins with SEED=$$seed"; export GILSCOPE_SEED="$$seed"; \
	$(call PYTEST,.venv,all-builds,not nightly,--builds all) || failed=1; \
	$(call PYTEST,.venv,nightly,nightly,--builds all) || failed=1; \
	$(VENV)/python -m pytest -n 3 --hypothesis-profile nightly --hypothesis-seed "$$seed" $(ARGS) \
		$$(grep -rl 'hypothesis import' tests --include='test_*.py') || failed=1; \
	$(VENV)/python .ci/sanitize.py || failed=1; \
	exit $$failed

# The C code in other people's processes under AddressSanitizer and UBSan; `make nightly` does it, too.
sanitize:
	@$(BOOTSTRAP) test
	@$(VENV)/python .ci/sanitize.py

bench: pair
	$(VENV)/gilscope run --quick $(ARGS)

wheel:
	@$(BOOTSTRAP) release
	$(VENV)/python .ci/make_wheels.py $(ARGS)

docs:
	@$(BOOTSTRAP) docs
	$(VENV)/sphinx-build --builder html --nitpicky --fail-on-warning --fresh-env --quiet -c docs . docs/_build/html
	@echo 'the site is docs/_build/html/index.html'

lint:
	@$(BOOTSTRAP) lint
	$(VENV)/ruff check .

type:
	@$(BOOTSTRAP) test,workloads,type
	$(VENV)/mypy
	MYPYPATH=.github/action $(VENV)/mypy .github/action/*.py

clean:
	rm -rf .venv .venv-oldest .tox .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* htmlcov \
		build dist docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
