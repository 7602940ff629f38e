"""Every workload on every runner, for real: a right result, or a skip whose reason is known to be true."""

import json
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest

from gilscope.runners.catalog import PACKAGES, RUNNERS
from gilscope.workloads.catalog import WORKLOADS
from tests.conformance.builds import ROOT, environment, run_child
from tests.conformance.dask_builds import dask_python, newest
from tests.measure.children import python_of
from tests.patience import PATIENCE

WORDS = ("cannot share a", "is not installed", "does not support loading in subinterpreters")


@contextmanager
def service(name):
    """Run a loopback server and yield its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "gilscope.workloads.servers", name], cwd=ROOT, env=environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as server:
        yield server.stdout.readline().strip()
        server.stdin.close()  # it serves until then


@pytest.fixture(scope="session")
def python(build):
    """Return the interpreter of `build`, with the packages that runners need."""
    return python_of(build)


@pytest.fixture(scope="session")
def addresses():
    with ExitStack() as stack:
        yield {f"GILSCOPE_{name.upper()}": stack.enter_context(service(name)) for name in ("echo", "http")}


@pytest.mark.slow
@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("name", [runner.name for runner in RUNNERS if runner.name not in PACKAGES])
def test_every_workload_is_right_or_skipped_for_a_reason(name, python, addresses, tmp_path):
    assert_right(python, name, addresses, tmp_path)


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(("name", "free_threaded"), [("dask", False), *((name, True) for name in PACKAGES)])
def test_every_workload_is_right_on_dask(name, free_threaded, addresses, tmp_path):
    assert_right(dask_python(newest(free_threaded=free_threaded)), name, addresses, tmp_path)


def assert_right(python, name, addresses, tmp_path):
    done = run_child(python, "tests/conformance/child.py", name, "1" if name == "serial" else "2",
                     timeout=PATIENCE, TMPDIR=str(tmp_path), **addresses)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    if "unavailable" in reports[0]:
        pytest.skip(reports[0]["unavailable"])
    assert {report["workload"] for report in reports} == {workload.name for workload in WORKLOADS}
    wrong = [report for report in reports if report["outcome"] == "failed"]
    assert not wrong, "\n".join(f"{report['workload']}: {report['reason']}" for report in wrong)
    for report in reports:
        assert report["outcome"] == "right" or any(words in report["reason"] for words in WORDS), report
    assert sum(report["outcome"] == "right" for report in reports) > len(WORKLOADS) // 2
    assert list(tmp_path.iterdir()) == []
