"""What all tests need before the first of them."""

import random
import signal

import pytest
from hypothesis import HealthCheck, settings

# A job in the background of a shell without a terminal, as CI is, ignores SIGINT and SIGQUIT, and every process it starts
# inherits that.  Tests that press Ctrl-C need the usual state.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# The same examples each time, however long a busy machine takes for one: chance decides neither what is tried nor when
# it is given up.
settings.register_profile("gilscope", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gilscope")

SEED = 20261122   # of the samples: the same cases each time

# Projects that tests evaluate, with tests of their own.
collect_ignore = ["corpus/evaluate"]


def pytest_addoption(parser):
    parser.addoption("--part", choices=("fast", "rest"),
                     help="fast: what `make test` runs: nothing slow, and a sample of tests with many cases; rest: what"
                          " that leaves out. Together they are all tests.")


def pytest_report_header(config):
    part = config.option.part
    return part and f"the {part} part of the tests; samples by seed {SEED}"


@pytest.hookimpl(trylast=True)   # after -m and -k
def pytest_collection_modifyitems(config, items):
    """Keep the part of the tests that is asked for."""
    if config.option.part is None:
        return
    fast = {item for item in items if not item.get_closest_marker("slow")}
    large = {}
    for item in items:
        if item in fast and (mark := item.get_closest_marker("sample")):
            large.setdefault((item.path, item.originalname, mark.args[0]), []).append(item)
    for (path, name, kept), cases in large.items():
        # By names, so that a new test elsewhere does not change the choice here.
        fast -= {*cases} - {*random.Random(f"{SEED} {path.name} {name}").sample(cases, min(kept, len(cases)))}
    chosen = [item for item in items if (item in fast) == (config.option.part == "fast")]
    config.hook.pytest_deselected(items=[item for item in items if item not in {*chosen}])
    items[:] = chosen
