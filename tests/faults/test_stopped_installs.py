"""An installer with a build backend that never ends, stopped from outside: no process and no folder of it stays."""

import io
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from gilscope.toolkit.builds.uv import uv_command
from tests.conformance.builds import ROOT, chosen
from tests.patience import PATIENCE
from tests.processes.test_supervised import gone, told

# A build backend in the source itself, so that nothing is downloaded.
BACKEND = """import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
with open({told!r} + '.part', 'w') as file: file.write(f'{{os.getpid()}} {{child.pid}} {{os.getppid()}}')
os.rename({told!r} + '.part', {told!r})
time.sleep(600)
"""
PROJECT = """[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def add_source(index, name, files):
    with tarfile.open(index / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


@pytest.mark.slow
@pytest.mark.newest
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_sleeping_build_backend_ends_with_doctor(tmp_path, number):
    if uv_command() is not None:
        pytest.skip("uv builds in places of its own")
    build = chosen()[-1]
    for name in ("index", "tmp", "home"):
        (tmp_path / name).mkdir()
    add_source(tmp_path / "index", "sleepy", {
        "PKG-INFO": "Metadata-Version: 2.1\nName: sleepy\nVersion: 1.0\n", "pyproject.toml": PROJECT,
        "backend.py": BACKEND.format(told=str(tmp_path / "told"))})
    env = os.environ | {"GILSCOPE_CACHE": str(tmp_path / "cache"), "PIP_NO_INDEX": "1", "PYTHONPATH": str(ROOT),
                        "PIP_FIND_LINKS": str(tmp_path / "index"), "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "gilscope", "doctor", "sleepy", "--build-sdists", "--builds", build.label,
         f"--build={build.label}={build.executable}"], cwd=tmp_path, env=env, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE) as doctor:
        try:
            pids = told(tmp_path / "told")
            doctor.send_signal(number)
            _, complaint = doctor.communicate(timeout=PATIENCE)
        finally:
            doctor.kill()
    assert doctor.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert b"Traceback" not in complaint
    assert all(map(gone, pids))
    left = {each.name for each in Path(tmp_path, "tmp").iterdir()}
    if number == signal.SIGKILL:   # nobody lives to remove them: the next start does
        assert left
        subprocess.run([sys.executable, "-P", "-m", "gilscope", "report"], cwd=tmp_path, env=env, check=False,
                       capture_output=True, timeout=PATIENCE)
        left = {each.name for each in Path(tmp_path, "tmp").iterdir()}
    assert not left
