"""Requirements as a user types them: a file is known by its name and its content, a package by its name alone."""

import hashlib

import pytest

from gilscope.toolkit.builds.missing_packages import distribution_of
from gilscope.toolkit.commands.options.requirements import checked
from gilscope.toolkit.errors import UnknownNameError


@pytest.mark.parametrize(("file", "name"), [
    ("two_words-1.0-py3-none-any.whl", "two-words"), ("two_words-1.0.tar.gz", "two-words"),
])
def test_file_is_a_requirement_with_the_name_and_the_sum_of_what_is_in_it(tmp_path, monkeypatch, file, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / file).write_bytes(b"one")
    first = checked(file, paths=True)
    assert first == f"{name} @ {(tmp_path / file).as_uri()}#sha256={hashlib.sha256(b'one').hexdigest()}"
    assert distribution_of(first) == name   # under which it is found among what was installed
    (tmp_path / file).write_bytes(b"two")   # built again: what was installed of it before is another one
    assert checked(f"./{file}", paths=True) != first


def test_folder_beside_does_not_hide_a_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "six").mkdir()
    assert checked("six", paths=True) == "six"


def test_address_is_no_path():
    assert checked("six @ https://example.org/six.whl", paths=True) == "six @ https://example.org/six.whl"


def test_file_of_no_package_is_refused(tmp_path):
    (tmp_path / "notes.zip").write_bytes(b"")
    with pytest.raises(UnknownNameError, match="is no wheel and no source archive"):
        checked(str(tmp_path / "notes.zip"), paths=True)
