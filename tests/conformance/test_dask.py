"""dask.distributed as a runner: what every pool must do, each case in a fresh process; takes a package registry."""

import os
import signal
import subprocess

import pytest

from gilscope.runners import dask_
from gilscope.runners.catalog import PACKAGES, find
from tests.conformance.builds import ROOT, environment
from tests.conformance.cases import cases_of
from tests.conformance.dask_builds import dask_python, newest
from tests.patience import PATIENCE, wait_until
from tests.test_runners import HERE, run_cases, session_members


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(("name", "case"), [
    (name, case) for name in PACKAGES for cases in cases_of(name) for case in cases])
def test_case(name, case, tmp_path):
    run_cases(python_with(name), name, [case], tmp_path)


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("name", PACKAGES)
def test_ctrl_c_in_map_ends_everything(name, tmp_path):
    marker = tmp_path / "busy"
    with subprocess.Popen(
        [python_with(name), str(HERE / "interrupted.py"), name, str(marker)], cwd=ROOT, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as child:
        try:
            assert wait_until(lambda: child.poll() is not None or len(list(tmp_path.glob("busy.*"))) == 2)
            os.kill(child.pid, signal.SIGINT)
            output, errors = child.communicate(timeout=PATIENCE)
            assert output == "interrupted\n", errors
            assert wait_until(lambda: not session_members(child.pid))
        finally:
            for pid in session_members(child.pid):
                os.kill(pid, signal.SIGKILL)


def test_runner_that_is_not_installed_says_how_it_is(monkeypatch):
    monkeypatch.setattr(dask_, "find_spec", lambda _: None)
    assert find("dask").unavailable() == "needs the package distributed, which --models dask installs"


def python_with(name):
    """Return the interpreter to try a runner in: the threads of one process need a build without the GIL."""
    return dask_python(newest(free_threaded=name != "dask"))
