"""What all tests need before the first of them."""

import gc
import os
import random
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.conformance.builds import builds, is_free_threaded

# A job in the background of a shell without a terminal, as CI is, ignores SIGINT and SIGQUIT, and every process it
# starts inherits that.  Tests that press Ctrl-C need the usual state.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:   # under nohup this run lives on
    signal.signal(signal.SIGHUP, lambda *_: None)

# Most tests that store runs name the folder; tests/store/test_folders.py tests the default.
os.environ["GILSCOPE_RESULTS"] = "results"

# `gilscope race` says a word more where it is set; what programs print is compared.
os.environ.pop("CI", None)

# Tests start thousands of Pythons: each would compile gilscope anew, and each process that collects tests all of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same examples each time, however long a busy machine takes for one: chance decides neither what is tried nor when
# it is given up.
settings.register_profile("gilscope", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gilscope")

SEED = 20261122   # of the samples: the same cases each time

# Projects that tests evaluate, with tests of their own.
collect_ignore = ["corpus/evaluate", "corpus/planted"]


PARTS = ("fast", "rest", "oldest", "oldest-rest")
CASES = 2         # of a test, in the part for the oldest Python


def pytest_addoption(parser):
    parser.addoption("--part", choices=PARTS,
                     help="fast: what `make test` runs: nothing slow, a sample of tests with many cases, and of tests"
                          " for all builds one with the GIL and one without; rest: what that leaves out. Together they"
                          f" are all tests. oldest: of the fast ones, {CASES} cases of each test, and none that is"
                          " marked newest; oldest-rest: the other fast ones.")


def pytest_report_header(config):
    part = config.option.part
    return part and f"the {part} part of the tests; samples by seed {SEED}"


@pytest.hookimpl(trylast=True)   # after -m and -k
def pytest_collection_modifyitems(config, items):
    """Keep the part of the tests that is asked for."""
    part = config.option.part
    if part is None:
        return
    chosen = on_few_builds(sampled((item for item in items if not item.get_closest_marker("slow")), sample_size))
    few = sampled((item for item in items if item in chosen and not item.get_closest_marker("newest")),
                  lambda item: None if item.get_closest_marker("every_python") else CASES)
    chosen = {"fast": chosen, "rest": {*items} - chosen, "oldest": few, "oldest-rest": chosen - few}[part]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


@pytest.hookimpl(optionalhook=True)   # of xdist
def pytest_testnodedown(node, error):
    """Say how a worker ended that should have gone on; xdist says only that it did."""
    if error:
        node.config.pluginmanager.get_plugin("terminalreporter").write_line(
            f"the process of {node.gateway.id} ended with {node.gateway._io.popen.wait(timeout=10)}")


def pytest_collection_finish():
    """Have the collector leave alone what lives as long as this process: thousands of tests, whenever one collects."""
    gc.collect()
    gc.freeze()


def sample_size(item):
    """Return how many cases of this item's test are fast enough together, None for all."""
    mark = item.get_closest_marker("sample")
    return mark and mark.args[0]


def on_few_builds(items):
    """Return the set of those items that are left when tests for all builds run on one with the GIL and one without."""
    labels = {text: label for label, path in builds().items() for text in (label, path)}
    chosen, cases = {*items}, {}
    for item in items:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        label = next((labels[value] for value in values if isinstance(value, str) and value in labels), None)
        if label and sample_size(item) is None:
            cases.setdefault((item.path, item.originalname), {}).setdefault(label, []).append(item)
    for (path, name), by_build in cases.items():
        if len(by_build) == len(builds()):   # others have names of builds among their cases
            draw = random.Random(f"{SEED} {path.name} {name}")
            kinds = ([label for label in sorted(by_build) if is_free_threaded(builds()[label]) is free]
                     for free in (False, True))
            kept = {draw.choice(kind) for kind in kinds if kind}
            chosen -= {item for label, left_out in by_build.items() if label not in kept for item in left_out}
    return chosen


def sampled(items, size):
    """Return the set of those items that are left when of each test's cases `size(case)` are drawn."""
    chosen, cases = set(), {}
    for item in items:
        if (kept := size(item)) is None:
            chosen.add(item)
        else:
            cases.setdefault((item.path, item.originalname, kept), []).append(item)
    for (path, name, kept), found in cases.items():
        # By names, so that a new test elsewhere does not change the choice here.
        chosen |= {*random.Random(f"{SEED} {path.name} {name}").sample(found, min(kept, len(found)))}
    return chosen
