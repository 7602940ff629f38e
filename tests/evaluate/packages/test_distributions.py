"""Which modules a wheel's files are, for which build; files written by hand, no compiler."""

from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.packages.distributions import installed
from tests.evaluate.places import at_hand


@pytest.fixture
def thing(tmp_path):
    """Install a distribution of some files; those with a name after the colon have that init function."""

    def make(*files, version="3.14.7", free_threaded=True):
        for text in files:
            path, _, hook = text.partition(":")
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"\x7fELF \0" + hook.encode() + b"\0 rest")
        info = tmp_path / "Thing_One-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Thing.One\nVersion: 1.0\n"
                                       "Requires-Dist: Needed (>=1)\nRequires-Dist: extra_one; extra == 'x'\n")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nTag: cp314-cp314t-linux_x86_64\n")
        (info / "RECORD").write_text("".join(f"{text.partition(':')[0]},,\n" for text in files))
        build = replace(at_hand()[0], version=version, free_threaded=free_threaded)
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
    assert installed([tmp_path], at_hand()[0]) == ()
