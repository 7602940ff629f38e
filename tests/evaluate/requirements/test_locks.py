"""Lock files of four kinds."""

import platform

import pytest

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.evaluate.requirements.locks import read_lock
from gilscope.toolkit.evaluate.requirements.wheel_for_build import choose_wheels
from tests.fakes import make_build

MACHINE = platform.machine()
OLD = f"manylinux_2_17_{MACHINE}.manylinux2014_{MACHINE}"
UV = f"""
version = 1
revision = 3
requires-python = ">=3.12"

[[package]]
name = "Fast_JSON"
version = "1.0"
source = {{ registry = "https://example.org/simple" }}
dependencies = [{{ name = "Needed_One", marker = "sys_platform == 'linux'" }}]
resolution-markers = ["python_full_version >= '3.13'", "sys_platform == 'win32'"]
sdist = {{ url = "https://example.org/fast_json-1.0.tar.gz", hash = "sha256:aa", size = 1 }}
wheels = [
    {{ url = "https://example.org/fast_json-1.0-cp314-cp314t-{OLD}.whl", hash = "sha256:aa", size = 1 }},
    {{ url = "https://example.org/fast_json-1.0-cp314-cp314-{OLD}.whl", hash = "sha256:aa", size = 1 }},
]

[[package]]
name = "svc"
version = "0.1"
source = {{ editable = "." }}
"""
PYLOCK = f"""
lock-version = "1.0"
created-by = "some tool"
[[packages]]
name = "fast-json"
version = "1.0"
marker = "python_full_version >= '3.13'"
dependencies = [{{ name = "needed-one" }}]
[[packages.wheels]]
name = "fast_json-1.0-cp314-cp314-{OLD}.whl"
url = "https://example.org/x"
hashes = {{ sha256 = "aa" }}
[[packages.wheels]]
path = "wheels/fast_json-1.0-cp314-cp314t-{OLD}.whl"
hashes = {{ sha256 = "aa" }}
[packages.sdist]
name = "fast_json-1.0.tar.gz"
url = "https://example.org/fast_json-1.0.tar.gz"
hashes = {{ sha256 = "aa" }}
[[packages]]
name = "svc"
[packages.directory]
path = "."
"""
POETRY = f"""
[[package]]
name = "fast-json"
version = "1.0"
markers = "python_version >= '3.13'"
files = [
    {{file = "fast_json-1.0-cp314-cp314-{OLD}.whl", hash = "sha256:aa"}},
    {{file = "fast_json-1.0-cp314-cp314t-{OLD}.whl", hash = "sha256:aa"}},
    {{file = "fast_json-1.0.tar.gz", hash = "sha256:aa"}},
]
[package.dependencies]
needed-one = ">=1"
[metadata]
lock-version = "2.1"
"""


@pytest.mark.parametrize(("name", "text"), [("uv.lock", UV), ("pylock.toml", PYLOCK), ("pylock.svc.toml", PYLOCK),
                                            ("poetry.lock", POETRY)])
def test_each_format_gives_the_same_package(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (found,) = read_lock(tmp_path / name)
    assert (found.name, found.version, found.sdist) == ("fast-json", "1.0", True)
    assert found.needs == ("needed-one",)
    assert sorted(found.wheels) == [f"fast_json-1.0-cp314-cp314-{OLD}.whl", f"fast_json-1.0-cp314-cp314t-{OLD}.whl"]
    assert [len(choose_wheels([found], make_build(build))) for build in ("3.12", "3.14")] == [0, 1]   # its marker


UV_FOLDERS = "".join(f'[[package]]\nname = "{kind}"\nsource = {{ {kind} = "." }}\n'
                     for kind in ("editable", "virtual", "directory"))
PYLOCK_FOLDER = ('lock-version = "1.0"\ncreated-by = "some tool"\n'
                 '[[packages]]\nname = "a"\ndirectory = { path = "." }\n'
                 '[[packages]]\nname = "x"\nversion = "1"\n')
POETRY_FOLDER = '[[package]]\nname = "a"\nversion = "0"\nsource = { type = "directory" }\n[[package]]\n'


@pytest.mark.parametrize(("name", "text", "sdist"), [
    ("uv.lock", "version = 1\n" + UV_FOLDERS + '[[package]]\nname = "x"\nversion = "1"\nsource = {}\n', False),
    ("pylock.toml", PYLOCK_FOLDER + 'vcs = { type = "git", url = "https://x.org/x", commit-id = "aa" }\n', True),
    ("pylock.toml", PYLOCK_FOLDER + 'archive = { url = "https://x.org/x.zip", hashes = { sha256 = "a" } }\n', True),
    ("pylock.toml", PYLOCK_FOLDER + 'sdist = { path = "x-1.zip", hashes = { sha256 = "a" } }\n', True),
    ("poetry.lock", POETRY_FOLDER + 'name = "x"\nversion = "1"\nmarkers = { main = "" }\n'
     '[metadata.files]\nx = [{ file = "x-1.zip" }]\n', True),   # as poetry wrote it before 2.0
])
def test_folders_of_the_project_are_left_out_and_the_rest_kept(tmp_path, name, text, sdist):
    (tmp_path / name).write_text(text)
    assert [(each.pin, each.wheels, each.sdist) for each in read_lock(tmp_path / name)] == [("x==1", (), sdist)]


def test_pip_locks_for_one_platform_only(tmp_path):
    (tmp_path / "pylock.toml").write_text(PYLOCK.replace("some tool", "pip"))
    (found,) = read_lock(tmp_path / "pylock.toml")
    assert [each.kind for each in choose_wheels([found], make_build("3.15t"))] == ["not known"]


def test_pinned_requirements_name_no_files(tmp_path):
    (tmp_path / "requirements.txt").write_text("Fast_JSON==1.0 ; python_version >= '3.13'\n")
    (found,) = read_lock(tmp_path / "requirements.txt")
    assert (found.name, found.version, found.files_known) == ("fast-json", "1.0", False)
    assert found.pin == 'fast-json==1.0 ; python_version >= "3.13"'


@pytest.mark.parametrize(("name", "text", "said"), [
    ("uv.lock", "version = 1\n[[package", "cannot be read"), ("uv.lock", "a = 1", "supported are uv.lock"),
    ("pylock.toml", 'lock-version = "2.0"\ncreated-by = "x"\npackages = []', "pylock version 2.0"),
    ("poetry.lock", "[[package]]\nname = 'x'", "is not a valid lock file"),
    ("requirements.txt", "lxml>=6", "has no exact version"), ("requirements.txt", "lxml ??", "is not a requirement"),
])
def test_damaged_ones_are_named(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadFileError, match=said):
        read_lock(tmp_path / name)
