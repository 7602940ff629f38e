"""A disk that fills up at each write in turn: what was saved before stays whole, and the exit code is 3."""

import builtins
import errno
import io
import os
import shutil
from pathlib import Path

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.errors import SaveError, ToolkitError
from gilscope.toolkit.store import Store, load_run
from tests.conformance.builds import ROOT
from tests.faults.calling import call

EXAMPLE = ROOT / "results" / "example"
MOST = 200   # writes, more than any of these need


class Disk:
    """A disk below `folder` that is full from one write on: opening, writing, syncing, renaming, a new folder."""

    def __init__(self, folder, left=None):
        self.left = left   # writes until it is full; None: it never is
        self.writes = 0
        self._folder = os.fspath(folder)
        self._patch = pytest.MonkeyPatch()

    def write(self, path):
        if not os.fspath(path).startswith(self._folder):
            return
        self.writes += 1
        if self.left is not None and self.writes > self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))

    def __enter__(self):
        opened = self._opened(io.open)
        self._patch.setattr(io, "open", opened)
        self._patch.setattr(builtins, "open", opened)
        for name, place in (("rename", 1), ("mkdir", 0), ("fsync", None)):
            self._patch.setattr(os, name, self._counted(getattr(os, name), place))
        return self

    def __exit__(self, *_):
        self._patch.undo()

    def _opened(self, real):
        def opened(path, mode="r", *args, **options):
            if not isinstance(path, (str, os.PathLike)) or not set(mode) & set("wax+"):
                return real(path, mode, *args, **options)
            self.write(path)
            return Writing(real(path, mode, *args, **options), lambda: self.write(path))

        return opened

    def _counted(self, real, place):
        def counted(*args, **options):
            self.write(self._folder if place is None else args[place])   # what is synced in these tests lies there
            return real(*args, **options)

        return counted


class Writing:
    """A file whose first write may fail; of the thousands of pieces that follow each is as the first."""

    def __init__(self, file, begun):
        self._file = file
        self._begun = begun

    def write(self, text):
        if self._begun is not None:
            self._begun()
            self._begun = None
        return self._file.write(text)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


def copy_of(target):
    target.mkdir(parents=True)
    for file in EXAMPLE.glob("*.json"):
        shutil.copy(file, target)
    return target


def points(folder, action):
    """Return the numbers of writes after which the disk may be full: from none to all but one that `action` needs."""
    with Disk(folder) as disk:
        action()
    assert 0 < disk.writes < MOST
    return range(disk.writes)


def test_each_write_of_a_save_may_fail(tmp_path):
    path = copy_of(tmp_path / "results" / "label")
    before = load_run(path)

    def save():
        store, run = Store.reopen(path)
        try:
            store.save(run)
        finally:
            store.close()

    found = points(tmp_path, save)
    assert len(found) > 9   # the lock, two suites and run.json: each opened, written, synced, renamed
    for point in found:
        with Disk(tmp_path, point), pytest.raises(ToolkitError, match=r"No space left on device") as caught:
            save()
        assert caught.value.exit_code == SaveError.exit_code
        assert load_run(path).measurements == before.measurements
        assert not [*path.glob("*.part")]


@pytest.mark.parametrize(("words", "left"), [
    (("report", str(EXAMPLE), "--json", "{}/report.json"), "report.json"),
    (("report", str(EXAMPLE), "--markdown", "{}/report.md"), "report.md"),
    (("report", str(EXAMPLE), "--publish", "{}/published"), "published"),
])
def test_each_write_of_a_command_may_fail(words, left, tmp_path):
    words = [each.format(tmp_path) for each in words]

    def removed():
        target = Path(tmp_path / left)
        shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)

    for point in points(tmp_path, lambda: call(*words)):
        removed()
        with Disk(tmp_path, point):
            called = call(*words)
        assert (called.code, "No space left on device" in called.errors) == (cli.UNFINISHED, True), called.errors
        assert "Traceback" not in called.errors
