# Each target fetches what it needs: Python 3.11 or newer, git and make are enough to start.

UV_VERSION := 0.13.7
# Benchmarks are the files that can be run; the others in bench are shared by them.
BENCHES = $(sort $(subst _,-,$(patsubst bench/%.py,%,$(shell grep -l '__main__' bench/*.py 2>/dev/null))))
CODE := src tests bench examples
ROUNDS ?= 300
SEED ?= 1
define STATIC_CHECKS
{ .venv/bin/ruff format --check --quiet $(CODE) || { echo "run: make format"; false; }; } && \
.venv/bin/ruff check --quiet $(CODE) && \
.venv/bin/basedpyright && \
.venv/bin/lint-imports --no-logo
endef
FAST_TESTS = $(wildcard tests/unit tests/stories tests/shape)
# Processes that run tests: more than there are cores, because some of them wait. 0: all in one process.
WORKERS ?= $(shell cores=$$(nproc); echo $$((cores < 6 ? cores * 3 / 2 : 8)))

# The first Python that is new enough and can make virtual environments; choose another with PYTHON=...
NEW_ENOUGH := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for p in python3.11 python3 python3.12 python3.13; do \
	$$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && echo $$p && break; done)
endif

export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := .venv
unexport VIRTUAL_ENV
# Some containers ask Python to keep no compiled code: each of the thousand Pythons that tests start
# would compile all of Muster again.
unexport PYTHONDONTWRITEBYTECODE

# Trust what this machine trusts, as pip does: many sites have certificates of their own.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem),)
export UV_SYSTEM_CERTS ?= true
endif

UV := .tools/uv-$(UV_VERSION)/bin/uv
LOCK_CLIENTS = $(abspath $(UV)) pip compile --quiet --upgrade --python-version 3.11 --no-annotate --no-header
# Named after the Python, so that asking for another one makes the environment again.
SYNCED := .venv/synced-with-$(notdir $(PYTHON))

.DEFAULT_GOAL := help
.PHONY: help up down test check clients kubectls kubernetes observers conformance test-real test-long chaos chaos-slurm lint format bench counts reference changelog lock clean
.DELETE_ON_ERROR:

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "make %-11s %s\n", $$1, $$2}'

up: $(SYNCED) ## start Muster on this machine: make up, make up ARGS="--nodes 2 --gpus 4xA100-40GB"
	@.venv/bin/muster up $(ARGS)

down: $(SYNCED) ## stop it; running jobs run on
	@.venv/bin/muster down

# The static checks keep quiet unless they fail; then what they say comes last.
test: $(SYNCED) ## everything CI runs: every test, and the static checks beside them: WORKERS=3
	@said=$$(mktemp); { $(STATIC_CHECKS); } >"$$said" 2>&1 & checks=$$!; \
	trap 'kill $$checks 2>/dev/null; rm -f "$$said"' EXIT; \
	.venv/bin/pytest -n $(WORKERS); tests=$$?; \
	[ $$tests != 1 ] || { bash tests/again.sh; tests=$$?; }; \
	wait $$checks || { cat "$$said"; echo "The static checks have failed; what they say is above."; exit 1; }; \
	exit $$tests

check: lint ## the fast loop: the static checks, and unit, story and shape tests
	@.venv/bin/pytest -m "not slow" $(FAST_TESTS)

clients: $(UV) ## install the clients of Slurm and of Kubernetes that the tests use, apart from everything else
	@UV=$(UV) PYTHON=$(PYTHON) bash tests/clients/install.sh
	@UV=$(UV) PYTHON=$(PYTHON) bash tests/kubernetes_clients/install.sh

kubectls: $(UV) ## install several versions of kubectl that the tests use; two are built from Go modules
	@UV=$(UV) PYTHON=$(PYTHON) bash tests/kubectls/install.sh

kubernetes: ## build a real Kubernetes 1.36.3 to compare with, from Go modules, and keep it: 8 minutes
	@bash tests/kubernetes_real/build.sh

observers: ## build Prometheus 3.15, Alertmanager 0.31 and statsd_exporter, which tests let watch Muster, and keep them: 10 minutes
	@bash tests/observers/build.sh

conformance: $(SYNCED) ## Kubernetes' own conformance tests against Muster, an hour: FOCUS="sig-apps"
	@bash tests/conformance/install.sh
	@programs=$$(nice -n 10 bash tests/kubernetes_real/build.sh conformance) && \
	PYTHONPATH=tests .venv/bin/python -m conformance "$$programs" --focus "$(FOCUS)"

test-real: $(SYNCED) ## backends, stories and fault rounds with a real Slurm and a real Kubernetes, built for that: FAULTS=20
	@bash tests/kubernetes_real/install.sh
	@bash tests/kubernetes_real/build.sh >/dev/null
	@bash tests/differential/install.sh
	@.venv/bin/pytest tests/contracts/backends tests/live/test_kubernetes_cluster.py tests/live/test_kubernetes_adopting.py -k "kubernetes or slurm"
	@.venv/bin/pytest tests/live/test_slurm_cluster.py tests/live/test_slurm_rest.py tests/live/test_same_names.py tests/live/test_standby_of_slurm.py tests/live/test_two_clusters.py tests/live/test_in_cluster.py
	@PYTHONPATH=tests:. .venv/bin/python -m kubernetes_real.rounds --rounds $(or $(FAULTS),20) --seed $(SEED)
	@PYTHONPATH=tests:. .venv/bin/python -m chaos.slurm --rounds $(or $(FAULTS),20) --seed $(SEED)

test-long: $(SYNCED) ## the property tests with many more examples, and 100,000 senseless messages to each socket
	@HOSTILE_MESSAGES=100000 .venv/bin/pytest tests/hostile/test_fuzz.py tests/hostile/test_fuzz_doors.py \
		tests/hostile/test_fuzz_kubernetes.py
	@HYPOTHESIS_PROFILE=long .venv/bin/pytest tests/properties

chaos: $(SYNCED) ## kill everything at random moments and see that nothing is lost: ROUNDS=300 SEED=1
	@PYTHONPATH=tests .venv/bin/python -m chaos --rounds $(ROUNDS) --seed $(SEED)

chaos-slurm: $(SYNCED) ## the same with a real Slurm behind Muster, its daemons, and answers that are lost: ROUNDS=100
	@bash tests/differential/install.sh
	@PYTHONPATH=tests:. .venv/bin/python -m chaos.slurm --rounds $(ROUNDS) --seed $(SEED) $(ARGS)

lint: $(SYNCED) ## format, lint, type and import checks, changing nothing
	@$(STATIC_CHECKS)

format: $(SYNCED) ## format the code and mend what ruff can mend
	@.venv/bin/ruff check --fix --quiet --exit-zero $(CODE)
	@.venv/bin/ruff format $(CODE)

bench: export MUSTER_TRACES := $(or $(TRACES),$(MUSTER_TRACES))
bench: export BEFORE := $(BEFORE)
bench: $(SYNCED) ## measure one thing: make bench NAME=planner; traces come from TRACES=folder, options from ARGS
	@$(if $(filter $(NAME),$(BENCHES)),true,echo "NAME must be one of: $(or $(BENCHES),none yet)" >&2; exit 2)
	@$(UV) run --frozen --group bench python -m bench.$(subst -,_,$(NAME)) $(ARGS)

counts: $(SYNCED) ## files, lines, names and cycles of the source: CHECKOUTS="../before ." PAGE=docs/counts.md
	@PYTHONPATH=tests .venv/bin/python -m shape.counts $(or $(CHECKOUTS),.) $(if $(PAGE),--page $(PAGE))

reference: $(SYNCED) ## write the pages of docs/reference that are made from code
	@.venv/bin/python -m muster.doors.cli.reference > docs/reference/cli.md
	@.venv/bin/python -m muster.doors.config.page > docs/reference/cluster-yaml.md
	@.venv/bin/python -m muster.doors.request.page > docs/reference/requests.md
	@.venv/bin/python -m muster.doors.request.page schema > docs/reference/job-file.schema.json
	@.venv/bin/python -m muster.doors.kubernetes.pods.page > docs/reference/kubernetes-pods.md
	@.venv/bin/python -m muster.doors.kubernetes.foreign.page > docs/reference/kubernetes-foreign.md
	@.venv/bin/python -m muster.telemetry.page > docs/reference/metrics.md
	@.venv/bin/python -m muster.telemetry.alerting.page < src/muster/telemetry/rules/muster.rules.yml > docs/alerts.md
	@cd tests && ../.venv/bin/python -m doors.kubernetes.differences > ../docs/reference/kubernetes-differences.md

changelog: $(SYNCED) ## fold changes/ into CHANGELOG.md for the version in src/muster/__init__.py
	@$(UV) run --frozen --group release towncrier build --yes

lock: $(UV) ## resolve the dependencies again and write uv.lock, and those of the tested clients
	@$(UV) lock --python $(PYTHON) --upgrade
	@cd tests/clients && for list in clients jobstats; do \
		$(LOCK_CLIENTS) --universal requirements-$$list.in -o requirements-$$list.txt || exit; done
	@cd tests/clients && $(LOCK_CLIENTS) --python-platform linux --override overrides-lightning.txt \
		requirements-lightning.in -o requirements-lightning.txt
	@cd tests/kubernetes_clients && for list in libraries airflow; do \
		$(LOCK_CLIENTS) --universal requirements-$$list.in -o requirements-$$list.txt || exit; done

clean: ## remove everything that make can build again
	@rm -rf .venv .tools .hypothesis .pytest_cache .ruff_cache .import_linter_cache dist
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

$(SYNCED): $(UV) pyproject.toml uv.lock
	@$(UV) sync --frozen --quiet --python $(PYTHON)
	@rm -f .venv/synced-with-*
	@touch $@

$(UV):
	@test -n "$(PYTHON)" || { echo "Muster needs Python 3.11 or newer, with the venv module" >&2; exit 1; }
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo "$(PYTHON) is not Python 3.11 or newer with the venv module" >&2; exit 1; }
	@$(PYTHON) -m venv --clear .tools/uv-$(UV_VERSION)
	@.tools/uv-$(UV_VERSION)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@
