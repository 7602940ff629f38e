"""A project as it was built is kept with its environment, and used again while nobody can tell the difference."""

import os
import shutil
import time

import pytest

from gilscope.toolkit.evaluate.packages.scratch import FRESH_SECONDS
from gilscope.toolkit.evaluate.project.installing import (
    BUILT,
    Installation,
    copy_project,
    restore_installation,
    store_installation,
)

DONE = Installation(log="built it", output="built it")


@pytest.fixture
def environment(tmp_path):
    """Return an environment's folder that keeps a project built for the stamp "one"."""
    made = tmp_path / "made"
    made.mkdir()
    (made / "own.py").write_text("")
    folder = tmp_path / "environment"
    folder.mkdir()
    store_installation(folder, made, "one", DONE)
    return folder


def test_what_was_kept_is_used_for_the_same_sum_alone(environment, tmp_path):
    assert restore_installation(environment, tmp_path / "other", "two") is None
    assert restore_installation(environment, tmp_path / "target", "one") == DONE
    assert (tmp_path / "target" / "own.py").is_file()


def test_what_was_kept_a_day_ago_is_built_anew(environment, tmp_path):
    before = time.time() - FRESH_SECONDS - 60
    os.utime(environment / BUILT / "stamp.json", (before, before))
    assert restore_installation(environment, tmp_path / "target", "one") is None
    assert not (tmp_path / "target").exists()


def test_what_another_call_replaces_meanwhile_is_not_used(environment, tmp_path, monkeypatch):
    copytree = shutil.copytree
    stamp = environment / BUILT / "stamp.json"

    def copy(*args, **kwargs):
        copytree(*args, **kwargs)
        (tmp_path / "others").write_bytes(stamp.read_bytes())   # while the first still has its inode
        (tmp_path / "others").rename(stamp)

    monkeypatch.setattr(shutil, "copytree", copy)
    assert restore_installation(environment, tmp_path / "target", "one") is None
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(("beside", "copied"), [("Cargo.toml", False), ("setup.py", True)])
def test_what_cargo_built_is_not_copied(tmp_path, beside, copied):
    root = tmp_path / "own"
    (root / "target").mkdir(parents=True)
    (root / beside).write_text("")
    copy_project(root, tmp_path / "copy")
    assert (tmp_path / "copy" / "target").exists() == copied
    assert (tmp_path / "copy" / beside).is_file()
