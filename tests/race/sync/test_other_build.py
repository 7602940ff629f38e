"""All tests of this folder pass on the kind of build that does not run them already."""

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conformance.builds import ROOT, chosen, host, python_of
from tests.gil_guard.guarded import link_packages
from tests.patience import PATIENCE
from tests.shared import once

HERE = Path(__file__).relative_to(ROOT)
PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")     # pure Python, all that pytest imports
ENOUGH = 400                                                              # tests, each with two cores
SKIPPED = {"only real cores look at thread-locals", "its own frames are not told from a program's", "3.13",
           "a fork without the GIL leaves locks held"}


def test_edges_are_those_of_this_build(tmp_path, tmp_path_factory):
    others = [build for build in chosen() if build != host()]
    if not others:
        pytest.skip("no build of the other kind at hand")
    packages = once(tmp_path_factory, "pytest", lambda folder: link_packages(folder, PACKAGES))
    for build in others:
        results = tmp_path / f"{build.label}.xml"
        done = subprocess.run(
            [python_of(build), "-m", "pytest", HERE.parent, f"--ignore={HERE}", "-q",
             f"--confcutdir={HERE.parents[1]}", "-p", "no:cacheprovider", f"--junitxml={results}"],
            cwd=ROOT, capture_output=True, text=True, timeout=10 * PATIENCE, check=False,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
        assert done.returncode == 0, done.stdout + done.stderr
        cases = list(ElementTree.parse(results).iter("testcase"))
        assert {each.get("message") for case in cases for each in case.iter("skipped")} <= SKIPPED
        assert len(cases) >= ENOUGH
