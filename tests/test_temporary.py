"""What a killed gilscope leaves is swept by the next one; what a living one has is not."""

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from gilscope.toolkit import temporary
from tests.conformance.builds import ROOT

pytestmark = pytest.mark.newest


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def made_by(code, place):
    """Return the folder that another process makes, and that process, which waits for its standard input to end."""
    program = textwrap.dedent(f"""
        import sys, tempfile
        from gilscope.toolkit import temporary
        {code}
        print(tempfile.mkdtemp(prefix=temporary.prefix("x"), dir={str(place)!r}), flush=True)
        sys.stdin.read()
        """)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return Path(process.stdout.readline().strip()).name, process


def test_folder_goes_when_its_owner_is_gone_and_not_before(place):
    name, process = made_by("", place)
    with process:
        (place / name / "file").touch()
        temporary.sweep()
        assert (place / name / "file").exists()
        process.communicate("")
    temporary.sweep()
    assert not (place / name).exists()


def test_owner_that_nobody_has_waited_for_is_gone(place):
    name, process = made_by("", place)
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)   # dead, and left as it is
    temporary.sweep()
    assert not (place / name).exists()
    process.stdout.close()
    process.wait()


def test_own_folder_goes_when_asked(place):
    (place / f"{temporary.prefix()}x").mkdir()
    (place / f"{temporary.prefix('race')}x").mkdir()
    temporary.sweep()
    assert len(list(place.iterdir())) == 2
    temporary.sweep(own=True)
    assert not list(place.iterdir())


def test_number_that_has_come_again_is_another_owner(place, monkeypatch):
    monkeypatch.setattr(temporary, "_state_and_start", lambda pid: ("R", "7"))
    name = tempfile.mkdtemp(prefix=temporary.prefix(), dir=place)
    temporary.sweep()
    assert Path(name).exists()
    monkeypatch.setattr(temporary, "_state_and_start", lambda pid: ("R", "8"))
    temporary.sweep()
    assert not Path(name).exists()


def test_another_machines_or_containers_folder_stays(place):
    name, process = made_by("temporary._place = lambda: 'elsewhere'", place)
    with process:
        process.communicate("")
    temporary.sweep()
    assert (place / name).exists()


@pytest.mark.parametrize("name", ["gilscope-abc12345", "gilscope-race-1-0123abcd", "gilscope", "gilscope-", "other",
                                  f"mine-{temporary._place()}-0-1-x", f"gilscope-{temporary._place()}-1-x-y"])
def test_folder_whose_name_tells_no_owner_stays(name, place):
    (place / name).mkdir()
    temporary.sweep()
    assert (place / name).exists()


def test_link_and_file_under_such_a_name_stay(place):
    name, process = made_by("", place)
    with process:
        process.communicate("")
    (place / name).rmdir()
    (place / "target").mkdir()
    (place / name).symlink_to(place / "target")
    (place / f"{name}2").touch()
    temporary.sweep()
    assert (place / "target").exists()
    assert (place / f"{name}2").exists()


def test_sweeping_needs_no_folder(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    temporary.sweep()
