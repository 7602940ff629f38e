"""The names of C functions at offsets of an extension module, static ones included."""

import shutil
import subprocess

import pytest

from gilscope.toolkit.hammer.hammering import c_function
from gilscope.toolkit.hammer.symbols import function_at, functions

SOURCE = """
__attribute__((noinline)) static int lost(int number) { return number * 3; }
int told(int number) { return lost(number) + lost(number + 1); }
"""


@pytest.fixture
def library(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "a.c").write_text(SOURCE)
    path = tmp_path / "_a.cpython-314t-x86_64-linux-gnu.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(tmp_path / "a.c"), "-o", str(path)], check=True)
    return path


def test_static_function_of_a_crash_is_named(library):
    places = {each.name: each for each in functions(str(library))}
    lost = places["lost"]
    assert [function_at(str(library), lost.start + place) for place in (0, lost.size - 1)] == ["lost", "lost"]
    assert function_at(str(library), lost.start - 1) != "lost"
    # A return address may be the first one after a function that does not return.
    stack = (f'  Binary file "/usr/lib/libc.so.6", at +0x3c050 [0x7f]\n'
             f'  Binary file "{library}", at +0x{lost.start + lost.size:x} [0x7f]\n'
             f'  Binary file "{library}", at told+0x4 [0x7f]\n')
    assert c_function(stack) == "lost"


def test_function_of_a_stripped_file_is_not_known(library, tmp_path):
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(library.read_bytes()[:3000])
    subprocess.run(["cc", "-O1", "-s", "-shared", "-fPIC", str(tmp_path / "a.c"), "-o", str(library)], check=True)
    for path in (library, damaged, tmp_path / "a.c", tmp_path / "gone.so"):
        assert (function_at(str(path), 4400), functions(str(path))) == ("", ())
    stack = f'  Binary file "{library}", at +0x1130 [0x7f]\n  Binary file "{library}", at told+0x4 [0x7f]\n'
    assert c_function(stack) == "told"
