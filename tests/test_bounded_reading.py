"""Files that somebody else may have put there, read to an end that is known."""

import pytest

from gilscope.toolkit.bounded_reading import last_lines

pytestmark = pytest.mark.newest


def test_last_lines_are_the_last(tmp_path):
    path = tmp_path / "output"
    path.write_text("".join(f"line {number}\n" for number in range(5000)))
    assert last_lines(path).splitlines() == [f"line {number}" for number in range(4920, 5000)]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"x" * 100_000, b"\n" * 9000])
def test_last_lines_of_anything_are_short(content, tmp_path):
    path = tmp_path / "output"
    path.write_bytes(content)
    assert len(last_lines(path)) <= 8192


def test_last_lines_of_no_file_are_none(tmp_path):
    assert last_lines(tmp_path / "nothing") == ""
