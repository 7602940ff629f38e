"""Which modules a wheel's files are, for which build; files written by hand, no compiler."""

from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.evaluate.packages.distributions import damage, installed
from tests.conformance.builds import host


@pytest.fixture
def thing(tmp_path):
    """Install a distribution of some files; those with a name after the colon have that init function."""

    def make(*files, version="3.14.7", free_threaded=True):
        for text in files:
            path, _, hook = text.partition(":")
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            header = b"\x7fELF\2\1".ljust(64, b"\0")   # of a library without anything in it
            target.write_bytes(header + hook.encode() + b"\0 rest")
        info = tmp_path / "Thing_One-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Thing.One\nVersion: 1.0\n"
                                       "Requires-Dist: Needed (>=1)\nRequires-Dist: extra_one; extra == 'x'\n"
                                       "Requires-Dist: extra_two;extra=='x'\nRequires-Dist: three; 'x' == extra\n")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: cp314-cp314t-linux_x86_64\n")
        (info / "RECORD").write_text("".join(f"{text.partition(':')[0]},,\n" for text in files))
        build = replace(host(), version=version, free_threaded=free_threaded)
        (found,) = installed([tmp_path], build)
        return found

    return make


def names(found):
    return [name for name, _ in found.extensions]


def test_name_tags_and_needs(thing):
    found = thing("thing/__init__.py")
    assert (found.name, found.version, found.modules, found.pure) == ("thing-one", "1.0", ("thing",), True)
    assert (found.tags, found.requires) == (("cp314-cp314t-linux_x86_64",), ("needed",))


def test_only_files_with_an_init_function_of_their_name_are_extension_modules(thing):
    found = thing("thing/__init__.py", "thing/_c.so:PyInit__c", "thing/libthing.so:other", "thing/_d.so:PyInit__other",
                  "thing.libs/libz.so:PyInit_libz", "thing/_e.so:PyModExport__e")
    assert names(found) == ["thing._c", "thing._e"]
    assert not found.pure


@pytest.mark.parametrize(("suffix", "version", "free_threaded", "loads"), [
    ("cpython-314t-x86_64-linux-gnu.so", "3.14.7", True, True),
    ("cpython-314-x86_64-linux-gnu.so", "3.14.7", True, False),
    ("cpython-314-x86_64-linux-gnu.so", "3.14.7", False, True),
    ("cpython-313t-x86_64-linux-gnu.so", "3.14.7", True, False),
    ("cpython-314d-x86_64-linux-gnu.so", "3.14.7", False, False),   # of a build for debugging
    ("abi3.so", "3.14.7", False, True),
    ("abi3.so", "3.14.7", True, True),
    ("abi3.so", "3.15.0", True, False),
    ("abi3t.so", "3.14.7", True, False),
    ("abi3t.so", "3.15.0rc1+dev", True, True),
    ("abi3t-x86_64-linux-gnu.so", "3.15.0", False, True),
    ("so", "3.13.1", True, True),
])
def test_an_extension_module_is_of_one_build(thing, suffix, version, free_threaded, loads):
    found = thing(f"thing/_c.{suffix}:PyInit__c", version=version, free_threaded=free_threaded)
    assert names(found) == ["thing._c"] * loads


@pytest.mark.parametrize("content", [
    b"", b"not a library", b"GROUP ( libm.so.6 )", b"\x7fELF\2\1", b"\x7fELF\7\1".ljust(64, b"\0"),
    b"\x7fELF\2\1".ljust(40, b"\0") + (2**20).to_bytes(8, "little") + bytes(10) + b"\x40\0\1\0" + bytes(2),   # cut off
])
def test_a_file_that_cannot_be_read_is_taken_for_an_extension_module(thing, tmp_path, content):
    found = thing("thing/__init__.py", "thing/_c.so:other")
    assert names(found) == []
    (tmp_path / "thing" / "_c.so").write_bytes(content)
    (found,) = installed([tmp_path], host())
    assert names(found) == ["thing._c"]


def test_every_library_of_this_python_is_whole_until_it_is_cut(tmp_path):
    library = Path(_ctypes_file())
    content = library.read_bytes()
    assert damage(library) == ""
    cut = tmp_path / "cut.so"
    for size in (*range(70), *range(70, len(content), len(content) // 50), len(content) - 1):
        cut.write_bytes(content[:size])
        assert damage(cut), size


def _ctypes_file():
    import _ctypes

    if not getattr(_ctypes, "__file__", None):
        pytest.skip("no extension module of the standard library is a file here")
    return _ctypes.__file__


def test_a_compiled_package_is_called_as_the_package(thing):
    found = thing("thing/__init__.so:PyInit_thing", "thing/a.py")
    assert (names(found), found.modules, found.inner) == (["thing"], ("thing",), ("thing.a",))


def test_a_name_that_is_not_ascii_has_its_own_kind_of_hook(thing):
    assert names(thing("größe.so:PyInitU_gre_6ka8i")) == ["größe"]


def test_the_outermost_public_packages_and_modules_are_imported(thing):
    found = thing("ns/pkg/__init__.py", "ns/pkg/sub/__init__.py", "ns/pkg/sub/x.py", "single.py", "_private.py",
                  "tests/__init__.py", "ns/pkg/test_x.py", "ns/pkg/__main__.py", "abc__mypyc.so:PyInit_abc__mypyc",
                  "../../bin/tool.py")
    assert found.modules == ("ns.pkg", "single")
    assert found.inner == ("ns.pkg", "ns.pkg.sub", "ns.pkg.sub.x")


def test_private_modules_are_imported_where_there_are_no_others(thing):
    assert thing("_only.so:PyInit__only").modules == ("_only",)


def test_a_folder_that_pip_left_behind_is_no_distribution(tmp_path):
    (tmp_path / "~hing-1.0.dist-info").mkdir()
    assert installed([tmp_path], host()) == ()
