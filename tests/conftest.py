"""What all tests need before the first of them."""

import contextlib
import gc
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from gilscope.toolkit.user_dirs import cache_folder
from tests.conformance import builds
from tests.patience import PATIENCE

# A job in the background of a shell without a terminal, as CI is, ignores SIGINT and SIGQUIT, and every process it
# starts inherits that.  Tests that press Ctrl-C need the usual state.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:   # under nohup this run lives on
    signal.signal(signal.SIGHUP, lambda *_: None)

# Most tests that store runs name the folder; tests/store/test_folders.py tests the default.
os.environ["GILSCOPE_RESULTS"] = "results"
# Tests run beside each other, and take the cores from each other.
os.environ["GILSCOPE_STARVED"] = "measure"

# pytest cuts no line where it is set; what programs print is compared.
os.environ.pop("CI", None)

# Tests start thousands of Pythons: each would compile gilscope anew, and each process that collects tests all of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same examples each time, however long a busy machine takes for one: chance decides neither what is tried nor when
# it is given up.  `make nightly` lets it decide what is tried.
settings.register_profile("gilscope", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", settings.get_profile("gilscope"), derandomize=False, max_examples=2000)
settings.load_profile("gilscope")

# Projects that tests evaluate, with tests of their own.
collect_ignore = ["corpus/evaluate", "corpus/planted"]

KEPT_SECONDS = 3 * 24 * 3600   # of caches of other sources

GIVEN = pytest.StashKey()   # what workers need not find out again
own_folders = contextlib.ExitStack()


def pytest_addoption(parser):
    parser.addoption("--builds", choices=builds.CHOICES, default="pair",
                     help="The builds of tests that name kinds. pair: this Python and its nearest of the other kind; "
                          "all: every build at hand; host: this Python alone (default: pair).")


def pytest_configure(config):
    """Know the builds, and share no cache, no lock and no temporary folder with another process of tests."""
    given = getattr(config, "workerinput", None) or {
        "builds": builds.hand_over(config.option.builds), "caches": _caches(), "workerid": "main"}
    builds.take_over(given["builds"])
    config.stash[GIVEN] = given
    cache = Path(given["caches"], given["workerid"])
    cache.mkdir(parents=True, exist_ok=True)
    for compiled in ("race-core", "gil-shim"):   # of these sources alone: once is enough
        (cache.parent / compiled).mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (cache / compiled).symlink_to(cache.parent / compiled)
    # Short, as the name of a socket in it has at most 107 characters; pytest's own folders stay where they were.
    root = os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())   # workers inherit ours
    temporary, machine = (own_folders.enter_context(
        tempfile.TemporaryDirectory(prefix="gs-", dir=root, ignore_cleanup_errors=True)) for _ in range(2))
    os.environ.update(GILSCOPE_CACHE=str(cache), GILSCOPE_MACHINE=machine, TMPDIR=temporary)
    tempfile.tempdir = None   # so that it is read again


def pytest_unconfigure():
    own_folders.close()


def _caches():
    """Return the folder of the caches of all processes: kept between runs, another one for other C sources."""
    summed = hashlib.sha256()
    for path in sorted((builds.ROOT / "toolkit").rglob("*.[ch]")):
        summed.update(path.read_bytes())
    mine = Path(f"{cache_folder()}-tests", summed.hexdigest()[:12])
    mine.mkdir(parents=True, exist_ok=True)
    os.utime(mine)
    for other in mine.parent.iterdir():
        if other.stat().st_mtime < time.time() - KEPT_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
    return str(mine)


@pytest.hookimpl(optionalhook=True)   # of xdist
def pytest_configure_node(node):
    node.workerinput.update({**node.config.stash[GIVEN], **node.workerinput})   # its own workerid stays


def pytest_report_header(config):
    tested = builds.chosen()
    others = [build.label for build in builds.found() if build not in tested]
    left_out = f"; not run, without --builds=all: {', '.join(others)}" if others else ""
    named = ", ".join(f"{builds.kind_of(each)} {each.version} {each.executable}" for each in tested)
    return f"builds: {named}{left_out}"


def pytest_generate_tests(metafunc):
    """Give the fixture `build` each build of the kinds that the test names."""
    if "build" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("builds")
    if mark is None:   # a test that is parametrised by hand
        return
    kinds = mark.args
    assert kinds, metafunc.definition.nodeid
    assert set(kinds) <= set(builds.KINDS), f"{metafunc.definition.nodeid}: builds{kinds}"
    pair = metafunc.config.option.builds != "all"
    cases = [pytest.param(build, id=kind if pair else build.label) for kind in kinds for build in builds.chosen(kind)]
    lacking = {"gil": "no build with the GIL at hand", "free": "no free-threaded build at hand"}
    cases += [pytest.param(None, id=kind, marks=pytest.mark.skip(reason=lacking[kind]))
              for kind in kinds if not builds.chosen(kind)]
    metafunc.parametrize("build", cases, scope="session")


def pytest_collection_modifyitems(config, items):
    """With --builds=host, leave out what is for another kind of build: nobody expects it."""
    if config.option.builds == "host":
        others = [item for item in items if hasattr(item, "callspec") and item.callspec.params.get("build", "") is None]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in {*others}]


@pytest.fixture(scope="session")
def python(build):
    """Return the interpreter of `build`."""
    return builds.python_of(build)


@pytest.hookimpl(optionalhook=True)   # of xdist
def pytest_testnodedown(node, error):
    """Say how a worker ended that should have gone on; xdist says only that it did."""
    if error:
        node.config.pluginmanager.get_plugin("terminalreporter").write_line(
            f"the process of {node.gateway.id} ended with {node.gateway._io.popen.wait(timeout=PATIENCE)}")


def pytest_collection_finish():
    """Have the collector leave alone what lives as long as this process: thousands of tests, whenever one collects."""
    gc.collect()
    gc.freeze()
