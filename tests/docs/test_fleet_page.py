"""The commands of the page on many machines as they stand there, where a machine has the address that they name."""

import contextlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from gilscope.toolkit.fleet.start_dask import quiet_variables
from gilscope.toolkit.processes.supervised import Supervised
from tests.conformance.builds import ROOT
from tests.docs.pages import blocks, commands
from tests.docs.test_commands import LESS, with_less_effort
from tests.fleet.network import Network, lacking
from tests.patience import PATIENCE, wait_until

pytestmark = [pytest.mark.nightly, pytest.mark.newest,
              pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")]

PAGE = ROOT / "docs" / "fleet.md"
ADDRESS = "10.0.0.5"


def test_commands_for_a_cluster_work_as_written(tmp_path):
    if why := lacking():
        pytest.skip(why)
    started = [line.split() for block in blocks(PAGE, "sh") for line in block.splitlines() if line.startswith("dask ")]
    asked = [each for each in commands(PAGE) if ADDRESS in each.text]
    assert [words[1] for words in started] == ["scheduler", "worker"]
    assert [each.text.split()[1] for each in asked] == ["fleet", "run", "run"]
    environment = os.environ | quiet_variables() | {"PYTHONPATH": str(ROOT), "GILSCOPE_MACHINE": str(tmp_path)}

    def call(words, at=()):
        return subprocess.run([*at, sys.executable, "-m", *words], cwd=tmp_path, env=environment, capture_output=True,
                              text=True, timeout=PATIENCE, check=False)

    pair = json.loads(call(["gilscope", "builds", "--json"]).stdout)["default_pair"]
    if pair is None:
        pytest.skip("no GIL and free-threaded build of one version at hand")
    builds = f"{pair['gil']},{pair['free_threaded']}"
    # What the builds need is there before: behind the address there is no package index.
    done = call(["gilscope", "run", "primes", "--builds", builds, *LESS, "--label", "before"])
    assert done.returncode == 0, done.stderr
    with Network(ADDRESS) as network:
        at = network.at("middle")
        scheduler, worker = ([*at, sys.executable, "-m", *words] for words in started)
        scheduler += ["--scheduler-file", str(tmp_path / "told")]   # so that we know when it is ready
        with contextlib.ExitStack() as running:
            process = running.enter_context(Supervised(scheduler, cwd=tmp_path, env=environment))
            wait_until((tmp_path / "told").exists, process)
            running.enter_context(Supervised(worker, cwd=tmp_path, env=environment))
            # 3: nobody is there yet.
            assert any(call(["gilscope", "fleet", f"tcp://{ADDRESS}:8786"], at).returncode != 3 for _ in range(100))
            for each in asked:
                done = call([word.replace("3.14,3.14t", builds) for word in with_less_effort(each)], at)
                assert done.returncode == 0, f"{each}: {done.stderr}"
    assert (tmp_path / "results" / "everywhere" / "rome" / "run.json").exists()
