"""A survey with real installers and imports, its packages in a folder in the place of an index."""

import json
import os
import signal
import subprocess
import sys

import pytest

from gilscope.toolkit.builds.uv import uv_command
from gilscope.toolkit.evaluate.packages.fetch_wheels import pip_of
from tests.conformance.builds import ROOT
from tests.faults.test_hostile_packages import add_wheel
from tests.faults.test_stopped_installs import BACKEND, PROJECT, add_source
from tests.patience import PATIENCE
from tests.processes.test_supervised import gone, told

pytestmark = [pytest.mark.slow, pytest.mark.newest, pytest.mark.builds("free")]

PLACES = [[], ["--fleet", "local:2"]]


@pytest.fixture
def place(build, tmp_path):
    """Return a folder with an index, the words that choose a build, and the environment to be called in."""
    for name in ("index", "tmp"):
        (tmp_path / name).mkdir()
    if uv_command() is None and pip_of(build, tmp_path / "index") is None:
        pytest.skip("this build comes without a pip")
    env = {name: value for name, value in os.environ.items() if not name.endswith("_PROXY")} | {
        "GILSCOPE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp"),
        **{f"{tool}_{key}": value for tool in ("PIP", "UV")
           for key, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(tmp_path / "index")))}}
    words = ["--builds", build.label, f"--build={build.label}={build.executable}"]
    return tmp_path, words, env


@pytest.fixture(params=PLACES, ids=["here", "fleet"])
def asked(request):
    """Return the words that say who answers."""
    if request.param:
        pytest.importorskip("distributed")
    return request.param


def command(words):
    return [sys.executable, "-P", "-m", "gilscope", "doctor", "--list", "packages.txt", "--lines", "-", *words]


def test_each_package_has_its_own_answer(place, asked):
    folder, words, env = place
    words += asked
    add_wheel(folder / "index", "good", {"good.py": "x = 1\n"})
    add_wheel(folder / "index", "crashes", {"crashes.py": "import os\nos.abort()\n"})
    (folder / "packages.txt").write_text("good\ncrashes\nabsent\n")
    done = subprocess.run(command(words), cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE,
                          check=False)
    assert done.returncode == 1, done.stderr
    found = {each["package"]: each["builds"][0]["status"] for each in map(json.loads, done.stdout.splitlines())}
    assert found.pop("absent") in {"not-found", "no-wheel"}
    assert found == {"good": "pure-python", "crashes": "crashes"}
    again = subprocess.run(command(words), cwd=folder, env=env, capture_output=True, text=True,
                           timeout=PATIENCE, check=False)
    assert "using 3 answers from the last day" in again.stderr
    assert sorted(again.stdout.splitlines()) == sorted(done.stdout.splitlines())


def test_ctrl_c_ends_what_is_asked_and_keeps_what_was_answered(place, asked):
    if uv_command() is not None:
        pytest.skip("uv builds in places of its own")
    folder, words, env = place
    words += asked
    add_wheel(folder / "index", "good", {"good.py": "x = 1\n"})
    add_source(folder / "index", "sleepy", {
        "PKG-INFO": "Metadata-Version: 2.1\nName: sleepy\nVersion: 1.0\n", "pyproject.toml": PROJECT,
        "backend.py": BACKEND.format(told=str(folder / "told"))})
    (folder / "packages.txt").write_text("good\nsleepy\n")
    with subprocess.Popen([*command(words), "--build-sdists"], cwd=folder, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as survey:
        try:
            first = survey.stdout.readline()
            pids = told(folder / "told")
            survey.send_signal(signal.SIGINT)
            _, complaint = survey.communicate(timeout=PATIENCE)
        finally:
            survey.kill()
    assert json.loads(first)["package"] == "good"
    assert survey.returncode == 130
    assert "run the same command again to continue" in complaint
    assert all(map(gone, pids))
    assert not list((folder / "tmp").iterdir())
    (folder / "packages.txt").write_text("good\n")
    again = subprocess.run([*command(words), "--build-sdists"], cwd=folder, env=env, capture_output=True, text=True,
                           timeout=PATIENCE, check=False)
    assert again.returncode == 0, again.stderr
    assert "using 1 answer from the last day" in again.stderr
