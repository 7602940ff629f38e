"""What all tests need before the first of them."""

import random
import signal

import pytest
from hypothesis import HealthCheck, settings

# A job in the background of a shell without a terminal, as CI is, ignores SIGINT, and every process it starts inherits
# that.  Tests that press Ctrl-C need the usual state.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples each time, however long a busy machine takes for one: chance decides neither what is tried nor when
# it is given up.
settings.register_profile("gilscope", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gilscope")

# Projects that tests evaluate, with tests of their own.
collect_ignore = ["corpus/evaluate"]


def pytest_addoption(parser):
    parser.addoption("--sample", type=int, metavar="SEED", default=None,
                     help="Run only some of the many cases of tests marked `sample`, chosen by this seed.")


def pytest_report_header(config):
    seed = config.option.sample
    return None if seed is None else f"some cases of the large tests, by seed {seed}; `make test-all` runs all"


@pytest.hookimpl(trylast=True)   # after -m and -k: so many of what is left
def pytest_collection_modifyitems(config, items):
    """Keep as many cases of each test marked `sample` as the mark says, the same ones for the same seed."""
    seed = config.option.sample
    if seed is None:
        return
    large = {}
    for item in items:
        if mark := item.get_closest_marker("sample"):
            large.setdefault((item.path, item.originalname), (mark.args[0], []))[1].append(item)
    dropped = set()
    for (path, name), (kept, cases) in large.items():
        # By names, so that a new test elsewhere does not change the choice here.
        chosen = random.Random(f"{seed} {path.name} {name}").sample(cases, min(kept, len(cases)))
        dropped |= {*cases} - {*chosen}
    config.hook.pytest_deselected(items=[item for item in items if item in dropped])
    items[:] = [item for item in items if item not in dropped]
