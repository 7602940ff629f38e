"""A survey on a cluster: a worker that is killed costs nobody an answer."""

import json
import os
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

from gilscope.toolkit.builds.uv import uv_command
from tests.conformance.builds import chosen
from tests.faults.test_stopped_installs import PROJECT, add_source
from tests.fleet.test_end_to_end import children, fleets  # noqa: F401  a fixture
from tests.patience import PATIENCE
from tests.processes.test_supervised import gone, told

pytestmark = [pytest.mark.slow, pytest.mark.newest,
              # Not imported here: that takes half a second, in each process that collects tests.
              pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")]

# Sleeps where it is built first, and fails at once anywhere after that.
BACKEND = """import os, time
if os.path.exists({told!r}): raise SystemExit('no more')
with open({told!r} + '.part', 'w') as file: file.write(str(os.getpid()))
os.rename({told!r} + '.part', {told!r})
time.sleep(600)
"""


def ancestors(pid):
    while pid > 1:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_package_whose_worker_is_killed_is_answered_by_another(fleets, tmp_path):  # noqa: F811
    if uv_command() is not None:
        pytest.skip("uv builds in places of its own")
    build = chosen()[-1]
    (tmp_path / "index").mkdir()
    add_source(tmp_path / "index", "sleepy", {
        "PKG-INFO": "Metadata-Version: 2.1\nName: sleepy\nVersion: 1.0\n", "pyproject.toml": PROJECT,
        "backend.py": BACKEND.format(told=str(tmp_path / "told"))})
    (tmp_path / "packages.txt").write_text("sleepy\n")
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index"), "GILSCOPE_CACHE": str(tmp_path / "cache")}
    with fleets.cluster(2, **index) as (address, _), fleets.start(
        "doctor", "--list", str(tmp_path / "packages.txt"), "--lines", "-", "--fleet", address, "--build-sdists",
        "--builds", build.label, f"--build={build.label}={build.executable}", **index,
    ) as survey:
        (asking,) = told(tmp_path / "told")
        above = set(ancestors(asking))
        (killed,) = [child for host in fleets.workers().values() for child in children(host) if child in above]
        os.kill(killed, signal.SIGKILL)
        output, complaint = survey.communicate(timeout=PATIENCE)
    assert gone(asking)
    assert output, complaint
    answer = json.loads(output.splitlines()[0])
    assert answer["package"] == "sleepy", complaint
    assert answer["builds"], complaint   # by another one, or by what its nanny has started instead
