"""Which file of a lock each build would take, and why it would take none."""

import platform

import pytest

from gilscope.toolkit.evaluate.requirements import wheel_for_build
from gilscope.toolkit.evaluate.requirements.locks import LockedPackage
from gilscope.toolkit.evaluate.requirements.wheel_for_build import choose_wheels, libc_floor, supported, why_no_wheel
from tests.fakes import make_build

MACHINE = platform.machine()
OLD = f"manylinux_2_17_{MACHINE}.manylinux2014_{MACHINE}"


def locked(*wheels, sdist=False):
    return LockedPackage(name="x", version="1", wheels=tuple(f"x-1-{tags}.whl" for tags in wheels), sdist=sdist)


@pytest.mark.parametrize(("build", "wheels", "kind"), [
    ("3.14t", [f"cp314-cp314t-{OLD}"], "binary"),
    ("3.14t", [f"cp314-cp314-{OLD}"], "nothing"),
    ("3.14t", [f"cp312-abi3-{OLD}"], "nothing"),      # the stable ABI of builds with a GIL is of no use here
    ("3.14", [f"cp312-abi3-{OLD}"], "binary"),
    ("3.15t", [f"cp315-abi3t-{OLD}"], "binary"),      # PEP 803
    ("3.15t", [f"cp314-cp314t-{OLD}"], "nothing"),
    ("3.14t", ["py3-none-any"], "pure"),
    ("3.13t", [f"cp314-cp314t-{OLD}", "py3-none-any"], "pure"),
    ("3.14t", [f"py3-none-{OLD}"], "binary"),          # a program or a library that is not an extension
])
def test_the_wheel_a_build_would_take(build, wheels, kind):
    (found,) = choose_wheels([locked(*wheels)], make_build(build))
    assert found.kind == kind


@pytest.mark.parametrize(("wheels", "said"), [
    ([], "no wheel at all"),
    ([f"cp313-cp313-{OLD}"], "no wheel for 3.14t (1 other wheel, none without a GIL)"),
    ([f"cp313-cp313-{OLD}", f"cp313-cp313t-{OLD}"],
     "no wheel for 3.14t (2 other wheels, including 3.13t)"),
    ([f"cp39-abi3-{OLD}"], "no wheel for 3.14t (1 other wheel: abi3, which no build without a GIL can load)"),
    # A machine with glibc takes no wheel that was made for musl, and the other way round.
    ([f"cp314-cp314t-manylinux_2_999_{MACHINE}", f"cp314-cp314t-musllinux_1_999_{MACHINE}"],
     "its wheels for 3.14t are for glibc 2.999 or newer, and here is glibc 2.36"),
    ([f"cp314-cp314t-musllinux_1_999_{MACHINE}"], "are for musl 1.999 or newer, and here is glibc 2.36"),
    (["cp314-cp314t-win_amd64"], "for other platforms"),
])
def test_no_wheel_has_its_reason(wheels, said, monkeypatch):
    monkeypatch.setattr(wheel_for_build, "_libc_here", lambda: ("glibc", "2.36"))
    (found,) = choose_wheels([locked(*wheels, sdist=True)], make_build("3.14t"))
    assert found.kind == "sdist"
    assert said in found.note


def test_pure_counterpart_of_binaries_is_told():
    (found,) = choose_wheels([locked("py3-none-any", f"cp314-cp314-{OLD}")], make_build("3.14t"))
    assert found.note == "pure Python, although 1 wheel of other builds has C code"


def test_file_that_is_no_wheel_is_passed_over():
    (found,
     ) = choose_wheels([LockedPackage(name="x", version="1", wheels=("x.whl", "x-1-py3-none-any.whl"), sdist=False)],
                       make_build("3.14"))
    assert found.wheel == "x-1-py3-none-any.whl"


def test_own_tags_come_first():
    best = supported(make_build("3.14t"))[0]
    assert (best.interpreter, best.abi) == ("cp314", "cp314t")


@pytest.mark.parametrize(("platforms", "floor"), [
    (["manylinux_2_17_x86_64", "manylinux2014_x86_64"], "glibc 2.17"),
    (["manylinux_2_28_x86_64", "manylinux_2_27_x86_64"], "glibc 2.27"),   # any of them will do
    (["manylinux1_x86_64"], "glibc 2.5"), (["musllinux_1_2_x86_64"], "musl 1.2"),
    (["any"], ""), (["linux_x86_64"], ""),
])
def test_oldest_c_library_that_a_wheel_runs_with(platforms, floor):
    assert libc_floor(platforms) == floor


def test_wheel_taken_has_its_c_library():
    (found,) = choose_wheels([locked(f"cp314-cp314t-{OLD}")], make_build("3.14t"))
    assert found.libc == "glibc 2.17"


def test_binary_half_names_whose_it_is():
    halves = [LockedPackage(name="x", version="1", wheels=("x-1-py3-none-any.whl",), sdist=False, needs=("x-binary",)),
              LockedPackage(name="x-binary", version="1", wheels=(f"x_binary-1-cp314-cp314-{OLD}.whl",), sdist=False)]
    assert [(each.kind, each.needed_by) for each in choose_wheels(halves, make_build("3.14t"))] == [
        ("pure", ()), ("nothing", ("x",))]


def test_names_that_are_no_wheels_say_nothing():
    assert why_no_wheel(["x-1.tar.gz"], make_build("3.14t")) == "no wheel at all"
