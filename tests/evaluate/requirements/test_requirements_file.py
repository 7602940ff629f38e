"""Requirements files as people write them."""

import pytest

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.evaluate.requirements.locks import read_lock
from gilscope.toolkit.evaluate.requirements.requirements_file import read_requirements_file

TEXT = """
--index-url https://example.org/simple   # an option
-r more.txt
--constraint=limits.txt
-e .
-e git+https://example.org/x.git#egg=x
./local
wheels/thing-1.0-py3-none-any.whl
https://example.org/other.zip
click==8.1.7 --hash=sha256:aa \\
    --hash=sha256:bb
tomli==2.0.1 ; python_version < "3.11"   # a marker
named @ https://example.org/named-1.0-py3-none-any.whl
Needs_Limit[extra]
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "more.txt").write_text("lxml==6.0.0\n-r requirements.txt\n")   # in circles
    (tmp_path / "limits.txt").write_text("needs-limit<3\nunused==1\n")
    path = tmp_path / "requirements.txt"
    path.write_text(TEXT)
    return path


def test_what_it_asks_for_and_what_is_no_release(file):
    found = read_requirements_file(file)
    assert found.requirements == (
        "lxml==6.0.0", "click==8.1.7", 'tomli==2.0.1 ; python_version < "3.11"',
        "named @ https://example.org/named-1.0-py3-none-any.whl", "Needs_Limit[extra]<3")
    assert found.left_out == (".", "git+https://example.org/x.git#egg=x", "./local",
                              "wheels/thing-1.0-py3-none-any.whl", "https://example.org/other.zip")


OTHER = """
--requirement more.txt
-c limits.txt
--editable .
needs-limit @ https://example.org/needs_limit-1.0-py3-none-any.whl
what ??
needs-limit>1 \\
    ; python_version < "4"
"""


def test_other_words_for_the_same_and_limits_named_further_down(file):
    (file.parent / "more.txt").write_text("-c inner.txt\nlxml\n")
    (file.parent / "inner.txt").write_text("what ??\nlxml<7\n")
    file.write_text(OTHER)
    found = read_requirements_file(file)
    assert found.requirements == (
        "lxml<7", "needs-limit @ https://example.org/needs_limit-1.0-py3-none-any.whl", "what ??",
        'needs-limit<3,>1; python_version < "4"')
    assert found.left_out == (".",)


def test_file_that_it_names_and_is_not_there(tmp_path):
    (tmp_path / "requirements.txt").write_text("-r absent.txt")
    with pytest.raises(BadFileError, match=r"absent\.txt cannot be read: No such file"):
        read_requirements_file(tmp_path / "requirements.txt")


def test_lock_with_a_url_keeps_it(tmp_path):
    path = tmp_path / "pinned.txt"
    path.write_text("named @ https://example.org/named-1.0-py3-none-any.whl\nlxml==6.0.0")
    assert [each.pin for each in read_lock(path)] == [
        "lxml==6.0.0", "named @ https://example.org/named-1.0-py3-none-any.whl"]


@pytest.mark.parametrize(("name", "text", "said"), [
    ("Pipfile.lock", "{}", "cannot be read as TOML: .*; supported are uv.lock"),
    ("notes.md", "hello", "has no exact version, so the file is not a lock"),
    ("other.lock", "[metadata]\n", "is not a valid lock file of its format"),
    ("some.toml", "name = 'x'", "is not a valid lock file of its format"),
])
def test_other_kinds_of_file_are_no_locks(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadFileError, match=said):
        read_lock(tmp_path / name)


def test_folder_and_nothing_are_no_locks(tmp_path):
    with pytest.raises(BadFileError, match="is a folder"):
        read_lock(tmp_path)
    with pytest.raises(BadFileError, match="there is no file"):
        read_lock(tmp_path / "uv.lock")
