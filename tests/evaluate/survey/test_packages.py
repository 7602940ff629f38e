"""The list of a survey: what is read, and what is refused with the line that has to be mended."""

import pytest

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.evaluate.survey.packages import listed_packages

pytestmark = pytest.mark.newest


def listed(tmp_path, content):
    file = tmp_path / "packages.txt"
    file.write_bytes(content)
    return listed_packages(file)


def test_comments_blank_lines_and_repetitions_are_left_out(tmp_path):
    assert listed(tmp_path, b"# the most used\n\nlxml  # XML\nnumpy >= 2\r\nlxml\nLXML\nx[y]==1\nx_z\nX-z\n") == (
        "lxml", "numpy>=2", "x[y]==1", "x_z")


@pytest.mark.parametrize(("content", "told"), [
    (b"", "lists no package: write one on each line"),
    (b"# nothing\n\n", "lists no package"),
    (b"lxml\nwhat!!\n-r more.txt\n", r"line 2: 'what!!', line 3: '-r more\.txt'"),
    (b"./wheels/one.whl\n", r"line 1: '\./wheels/one\.whl'"),
    (b"\0\0\0\n", "line 1: "),
    (b"\xff\xfe", "it is no text in UTF-8"),
    (b"a b\n" * 9, "line 5: 'a b' and 4 more"),
])
def test_what_cannot_be_asked_about_is_refused(tmp_path, content, told):
    with pytest.raises(BadFileError, match=told):
        listed(tmp_path, content)


def test_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadFileError, match=r"absent\.txt cannot be read: No such file"):
        listed_packages(tmp_path / "absent.txt")
