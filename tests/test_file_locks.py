"""Locks between processes: who holds one keeps others out, and they end with what holds them."""

import threading

import pytest

from gilscope.toolkit.file_locks import lock, locked, try_lock
from tests.patience import PATIENCE

pytestmark = pytest.mark.newest


@pytest.mark.parametrize(("first", "second", "taken"), [
    (True, True, True), (True, False, False), (False, True, False), (False, False, False)])
def test_shared_locks_are_taken_beside_one_another_and_no_others(first, second, taken, tmp_path):
    with (tmp_path / "lock").open("w") as one, (tmp_path / "lock").open("w") as other:
        assert try_lock(one, shared=first)
        assert try_lock(other, shared=second) is taken
    with (tmp_path / "lock").open("w") as after:
        assert try_lock(after)   # both were closed


def test_a_lock_is_waited_for(tmp_path):
    waiting, entered = threading.Event(), []

    def second():
        with locked(tmp_path / "folder" / "lock", waiting.set):
            entered.append(True)

    with locked(tmp_path / "folder" / "lock", pytest.fail):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(PATIENCE)
        assert not entered
    thread.join(PATIENCE)
    assert entered


def test_free_lock_is_not_waited_for(tmp_path):
    with (tmp_path / "lock").open("w") as file:
        lock(file, pytest.fail)
