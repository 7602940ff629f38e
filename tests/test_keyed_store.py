"""What an earlier call has stored comes back under its key, and damage, age or a full disk only cost time."""

import os
import time
from dataclasses import dataclass

import pytest

from gilscope.toolkit.keyed_store import KeyedStore


@dataclass(frozen=True)
class Answer:
    name: str
    ratio: float = 1.0


KEY = "3.14t", "numpy"


@pytest.fixture
def store(tmp_path):
    return KeyedStore(tmp_path / "there" / "answers")


def file_of(store):
    (file,) = store.folder.iterdir()
    return file


@pytest.mark.parametrize("value", [Answer("a"), Answer("\udcff", float("inf"))])
def test_value_comes_back_under_its_key_alone(store, value):
    assert store.get(Answer, *KEY) is None
    store.put(value, *KEY)
    assert store.get(Answer, *KEY) == value
    for other in (("3.14t",), ("3.14tnumpy",), ("3.14t", "numpy", ""), KEY[::-1]):
        assert store.get(Answer, *other) is None


def test_last_value_counts(store):
    store.put(Answer("a"), *KEY)
    store.put(Answer("b"), *KEY)
    assert store.get(Answer, *KEY) == Answer("b")
    assert file_of(store)


@pytest.mark.parametrize("content", [b"", b"junk", b"\xff", b"[]", b'{"name": 1}', b'{"other": "a"}', b"[" * 100_000])
def test_damaged_value_is_none(store, content):
    store.put(Answer("a"), *KEY)
    file_of(store).write_bytes(content)
    assert store.get(Answer, *KEY) is None


def test_pipe_in_its_place_is_not_waited_for(store):
    store.put(Answer("a"), *KEY)
    file = file_of(store)
    file.unlink()
    os.mkfifo(file)
    assert store.get(Answer, *KEY) is None


@pytest.mark.parametrize(("age", "valid"), [(0, True), (50, True), (70, False), (-3600, False)])
def test_old_value_and_one_from_the_future_are_none(store, age, valid):
    store.put(Answer("a"), *KEY)
    made = time.time() - age
    os.utime(file_of(store), (made, made))
    assert (store.get(Answer, *KEY, most_age=60) is not None) is valid
    assert store.get(Answer, *KEY) is not None


def test_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    store = KeyedStore(tmp_path / "file")
    store.put(Answer("a"), *KEY)
    assert store.get(Answer, *KEY) is None


def test_failed_write_leaves_no_file_and_no_earlier_value(store, monkeypatch):
    store.put(Answer("a"), *KEY)

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    store.put(Answer("b"), *KEY)
    assert list(store.folder.iterdir()) == []


def test_others_can_neither_read_nor_write_it(store):
    store.put(Answer("a"), *KEY)
    assert store.folder.stat().st_mode & 0o777 == 0o700


def test_only_old_values_are_removed(store):
    store.remove_older(60)   # there is no folder
    store.put(Answer("a"), *KEY)
    file = file_of(store)
    store.remove_older(60)
    assert file.exists()
    os.utime(file, (1, 1))
    store.remove_older(60)
    assert not file.exists()
