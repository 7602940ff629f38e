"""dask.distributed as a runner: what every pool must do, each case in a fresh process; takes a package registry."""

import os
import signal
import subprocess

import pytest

from gilscope.runners import dask_
from gilscope.runners.catalog import PACKAGES, find
from tests.conformance.builds import ROOT, environment, run_child
from tests.conformance.dask_builds import WITH_DASK, dask_python
from tests.patience import PATIENCE
from tests.test_runners import CASES, HERE, finish, session_members, wait_until

PLACES = dict(reversed(WITH_DASK))   # of `dask` the first, which has a GIL


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("name", PACKAGES)
@pytest.mark.parametrize("case", CASES)
def test_case(case, name, tmp_path):
    done = run_child(python(name), str(HERE / "cases.py"), case, name, TMPDIR=str(tmp_path))
    assert finish(done) == "ok", done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("name", PACKAGES)
def test_ctrl_c_in_map_ends_everything(name, tmp_path):
    marker = tmp_path / "busy"
    with subprocess.Popen(
        [python(name), str(HERE / "interrupted.py"), name, str(marker)], cwd=ROOT, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as child:
        try:
            wait_until(lambda: child.poll() is not None or len(list(tmp_path.glob("busy.*"))) == 2)
            os.kill(child.pid, signal.SIGINT)
            output, errors = child.communicate(timeout=PATIENCE)
            assert output == "interrupted\n", errors
            wait_until(lambda: not session_members(child.pid))
        finally:
            for pid in session_members(child.pid):
                os.kill(pid, signal.SIGKILL)


def test_runner_that_is_not_installed_says_how_it_is(monkeypatch):
    monkeypatch.setattr(dask_, "find_spec", lambda _: None)
    assert find("dask").unavailable() == "needs the package distributed, which --models dask installs"


def python(name):
    """Return the interpreter to try a runner in."""
    if name not in PLACES:
        pytest.skip("no build without a GIL")
    return dask_python(PLACES[name])
