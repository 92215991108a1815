# make help lists the targets. Nothing but Python 3.11 to 3.13, make and git is assumed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CORES ?= 2
VENV := .venv
READY := $(VENV)/ready
RUN := PATH="$(CURDIR)/$(VENV)/bin:$$PATH" MPLBACKEND=agg TF_CPP_MIN_LOG_LEVEL=2
SNAKEMAKE := $(RUN) snakemake --cores $(CORES) --workflow-profile workflow/profiles/default

.DEFAULT_GOAL := help
.PHONY: help env smoke test test-slurm test-kubernetes test-faults fuzz soak coverage lint list plan status reproduce run publish figures tables bench lock clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

env: $(READY)  ## the virtual environment in .venv, from the hash-pinned lock file

$(READY): requirements.lock pyproject.toml
	@command -v $(PYTHON) > /dev/null || { echo "error: $(PYTHON) is not on the PATH; install Python 3.11 to 3.13 or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "building $(VENV): one to three minutes, once"
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install -qq --require-hashes --no-deps -r requirements.lock
	$(VENV)/bin/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@

smoke: $(READY)  ## the whole pipeline on tiny data that needs no network, a few minutes
	$(SNAKEMAKE) --config experiment=smoke
	@echo "done: open results/smoke/report.html; the figures are in figures/smoke"

test: lint  ## all checks; real-data tests need DKEF_DATA_MIRROR
	$(RUN) python -m pytest -n 2 --dist loadgroup

test-slurm: $(READY)  ## the smoke experiment on a two-node Slurm that this starts and stops; root on Debian, half an hour
	$(VENV)/bin/python -m pip install -qq --require-hashes --no-deps -r workflow/profiles/slurm/requirements.txt
	$(RUN) python -m tests.cluster

test-kubernetes: $(READY)  ## one cell through the Kubernetes profile, with a stand-in for the server; minutes
	$(RUN) python -m tests.cluster.kubernetes

test-faults: $(READY)  ## kills, full disks, damaged files and more, each followed by a resume; root, half an hour
	$(RUN) python -m tests.faults

fuzz: MINUTES ?= 20
fuzz: $(READY)  ## broken input for every reader, 20 minutes for each of four targets or MINUTES=5
	$(RUN) python -m tests.fuzz --minutes $(MINUTES)

soak: MINUTES ?= 60
soak: $(READY)  ## memory and rate of the normaliser and of training, an hour each or MINUTES=5
	$(RUN) python -m tests.soak --minutes $(MINUTES)

coverage: MODELS ?= 200
coverage: $(READY)  ## how often the 95 % interval for log Z holds the truth, on models whose log Z is known; minutes
	$(RUN) python -m tests.normaliser.coverage --models $(MODELS)

lint: $(READY)  ## ruff, mypy, import-linter, snakefmt, snakemake --lint
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(RUN) lint-imports
	$(RUN) snakefmt --check Snakefile workflow
	$(RUN) snakemake --lint --config experiment=smoke

plan: EXPERIMENT ?= paper
plan: $(READY)  ## jobs that are left of EXPERIMENT=paper, core-hours by stage and dataset, wall time at CORES=2
	$(RUN) python -m dkef plan --experiment $(EXPERIMENT) --cores $(CORES)

list: $(READY)  ## experiments, datasets and models, with one line on each
	@$(RUN) python -m dkef list

status: EXPERIMENT ?= paper
status: $(READY)  ## cells of EXPERIMENT=paper that are done, running, failed or left; core-hours spent and left
	@$(RUN) python -m dkef status --experiment $(EXPERIMENT)

reproduce: $(READY)  ## the full paper; days on a workstation, hours on a cluster
	$(SNAKEMAKE) --config experiment=paper

run: EXPERIMENT ?= paper
run: $(READY)  ## cells of EXPERIMENT=name that its bundle does not have yet; TARGET=path for one file
	$(SNAKEMAKE) --config experiment=$(EXPERIMENT) -- $(or $(TARGET),$(shell $(RUN) python -m dkef missing --experiment $(EXPERIMENT)))

publish: EXPERIMENT ?= reproduction
publish: ROOT ?= .
publish: $(READY)  ## finished cells of EXPERIMENT=name into results/published, where git keeps them
	$(RUN) python -m dkef publish --experiment $(EXPERIMENT) --root $(ROOT)

figures: EXPERIMENT ?= reproduction
figures: $(READY)  ## figures, tables, claims and report of EXPERIMENT=name from its bundle, without training
	$(RUN) python -m dkef figures --experiment $(EXPERIMENT)

tables: $(READY)  ## fill the tables in documents from results/published
	$(RUN) python -m dkef tables --documents $(shell git grep -l "<!-- table" -- "*.md")

bench: $(READY)  ## benchmarks into results/bench.json, as ratios within one run
	$(RUN) python tests/bench/__main__.py

lock: $(READY)  ## write requirements.lock again from pyproject.toml (needs pip-tools; slow, it hashes every wheel)
	$(RUN) python -m piptools compile --all-extras --generate-hashes --allow-unsafe --strip-extras \
	    --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header -o requirements.lock pyproject.toml

clean:  ## remove what was produced and compiled, keep the environment and downloads
	rm -rf .snakemake $(VENV)/cache data/processed $(filter-out %.md %/published,$(wildcard results/* figures/*))
