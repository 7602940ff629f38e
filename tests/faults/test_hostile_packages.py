"""Hostile packages: each is judged by what it did; none costs another its verdict, the user a file, or us our life."""

import json
import os
import random
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from gilscope.toolkit.builds.uv import uv_command
from gilscope.toolkit.evaluate.packages.fetch_wheels import pip_of
from gilscope.toolkit.evaluate.packages.imports import ImportRequest, import_run
from tests.conformance.builds import ROOT
from tests.faults.hostile_packages import IMPORTED, PACKAGES, SECRET, SLOW, source
from tests.patience import PATIENCE
from tests.processes.test_supervised import gone

LIBRARY = next(Path(sys.base_prefix).glob("lib/python3*/lib-dynload/*.so"), None)
# Files with an extension module's suffix, in a package whose import asks for none of them.
FILES = {"text_library": b"this is no library\n", "empty_library": b"",
         "cut_library": None if LIBRARY is None else LIBRARY.read_bytes()[:5000]}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user with a home and a token."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{SECRET}@localhost:9")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    assert not list(folder.rglob(".hostile"))
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PACKAGES])
def test_import_is_judged_by_what_it_did(home, tmp_path, name):
    text, kinds = PACKAGES[name]
    (tmp_path / f"{name}.py").write_text(source(name, tmp_path / "told"))
    (tmp_path / "good.py").write_text("x = 1\n")
    limit = 8.0 if name in SLOW else 60.0
    run = import_run(Path(sys.executable), ImportRequest(roots=(name,)), path=[str(tmp_path)], limit=limit)
    assert run.kind in kinds, (run.reason, run.output)
    assert run.imported == (name,) if name in IMPORTED else run.imported in {(), (name,)}, run.failed
    if "tell(" in text:
        assert gone(int((tmp_path / "told").read_text()))
    assert import_run(Path(sys.executable), ImportRequest(roots=("good",)), path=[str(tmp_path)]).kind == "done"


def add_wheel(index, name, files):
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(index / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in files))


@pytest.mark.slow
@pytest.mark.builds("free")
def test_doctor_judges_all_of_them_at_once(home, tmp_path, build):
    """The command, with wheels of a folder in the place of an index, in an order that a seed draws."""
    index = tmp_path / "index"
    index.mkdir()
    if uv_command() is None and pip_of(build, index) is None:
        pytest.skip("this build comes without a pip")
    hostile = {name: each for name, each in PACKAGES.items() if name not in SLOW - {"hangs"}}
    for name in hostile:
        add_wheel(index, name, {f"{name}.py": source(name, tmp_path / f"told-{name}")})
    files = {name: content for name, content in FILES.items() if content is not None}
    for name, content in files.items():
        add_wheel(index, name, {f"{name}/__init__.py": "", f"{name}/_c.so": content})
    good = [f"good_{number}" for number in range(6)]
    for name in good:
        add_wheel(index, name, {f"{name}.py": "x = 1\n"})
    wanted = [*hostile, *files, *good]
    random.Random(build.label).shuffle(wanted)
    env = {name: value for name, value in os.environ.items() if not name.endswith("_PROXY")} | {
        "GILSCOPE_CACHE": str(tmp_path / "cache"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index),
        "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(index)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gilscope", "doctor", *wanted, "--builds", build.label,
         f"--build={build.label}={build.executable}", "--json", "found.json", "--timeout", "20s"], cwd=tmp_path,
        env=env | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr
    (judged,) = json.loads((tmp_path / "found.json").read_text())["builds"]
    found = {each["name"].replace("-", "_"): each for each in judged["packages"]}
    assert set(found) == set(wanted)
    assert {name: found[name]["status"] for name in good} == dict.fromkeys(good, "pure-python")
    assert {name: found[name]["status"] for name in files} == dict.fromkeys(files, "unknown")
    for name, (text, kinds) in hostile.items():
        assert found[name]["details"]["imports"]["natural"]["kind"] in kinds, name
        told = tmp_path / f"told-{name}"
        if "tell(" in text:
            assert gone(int(told.read_text()))
