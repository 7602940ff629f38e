"""Which pairs of builds are fair to compare."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gilscope.toolkit.builds.pairing import best_pair, compare_builds
from gilscope.toolkit.model import Build

GIL = Build(
    label="3.13", version="3.13.0", executable="/a", base_executable="/a", free_threaded=False, source="uv",
    debug=False, jit="no", compiler="GCC 12.2.0", opt_level="-O3", pgo=True, lto=True, allocator="pymalloc",
    revision="60403a5409ff", config_args="'--enable-optimizations' '--with-lto'")
FREE = replace(GIL, label="3.13t", executable="/b", base_executable="/b", free_threaded=True, allocator="mimalloc",
               config_args="'--enable-optimizations' '--with-lto' '--disable-gil'")


@pytest.mark.parametrize(("changes", "mismatches"), [
    pytest.param({}, [], id="one source, same flags: mimalloc comes with free threading"),
    # astral-sh/uv#8194: the free-threaded builds of python-build-standalone were debug ones for a while.
    pytest.param({"debug": True, "pgo": False, "lto": False, "opt_level": "-O0"},
                 ["optimization level", "profile-guided", "link-time", "debug"], id="uv#8194"),
    pytest.param({"version": "3.13.1"}, ["version"], id="another release"),
    pytest.param({"revision": "deadbeef"}, ["source"], id="another revision of one version"),
    pytest.param({"tail_call": True}, ["tail-calling"], id="tail calls in one of them"),
    pytest.param({"tail_call": False}, [], id="no tail calls, and one that did not tell"),
    pytest.param({"revision": "60403a5"}, [], id="the same revision in short"),
    pytest.param({"revision": ""}, [], id="a revision not told is not held against it"),
    pytest.param({"revision": "sha256:0123456789abcdef"}, [], id="a tarball and a commit cannot be compared"),
    pytest.param({"compiler": "Clang 18.1.8"}, ["compiler"], id="another compiler"),
    pytest.param({"opt_level": "-O2"}, ["optimization level"], id="-O2 against -O3"),
    pytest.param({"pgo": False}, ["profile-guided"], id="no PGO"),
    pytest.param({"lto": False}, ["link-time"], id="no LTO"),
    pytest.param({"allocator": "malloc"}, ["allocator"], id="plain malloc"),
    pytest.param({"jit": "on"}, ["JIT"], id="JIT on"),
    pytest.param({"jit": "off"}, [], id="JIT built in and off"),
    pytest.param({"config_args": "'--disable-gil' '--enable-shared'"}, ["shared library"], id="shared library"),
    pytest.param({"config_args": "--with-tail-call-interp=no"}, [], id="a feature switched off by name"),
])
def test_pairs_are_classified(changes, mismatches):
    notes = compare_builds(GIL, replace(FREE, **changes))
    assert len(notes) == len(mismatches)
    assert all(word in note.text for word, note in zip(mismatches, notes, strict=True))


def test_a_mismatch_names_both_builds():
    (note,) = compare_builds(GIL, replace(FREE, debug=True))
    assert note.text == "debug checks: 3.13t has it, 3.13 does not"


def test_two_tarballs_are_two_sources():
    tarballs = [replace(build, revision=f"sha256:{digit * 16}") for build, digit in ((GIL, "a"), (FREE, "b"))]
    assert [note.text[:7] for note in compare_builds(*tarballs)] == ["source:"]


def test_an_older_fair_pair_beats_a_newer_unfair_one():
    newer = [replace(GIL, label="3.14", version="3.14.1"), replace(FREE, label="3.14t", version="3.14.0")]
    pair = best_pair([*newer, GIL, FREE])
    assert (pair.gil.label, pair.free_threaded.label, pair.mismatches) == ("3.13", "3.13t", ())


def test_the_newest_of_fair_pairs_is_taken():
    newer = [replace(GIL, label="3.14", version="3.14.1"), replace(FREE, label="3.14t", version="3.14.1")]
    assert best_pair([GIL, FREE, *newer]).gil.label == "3.14"


def test_final_releases_are_taken_before_newer_candidates_unless_the_user_names_those():
    newer = [replace(each, label=f"new {each.label}", version="3.14.0rc1") for each in (GIL, FREE)]
    assert best_pair([GIL, FREE, *newer]).gil.version == "3.13.0"
    assert best_pair(newer).gil.version == "3.14.0rc1"
    assert best_pair([GIL, FREE, *(replace(each, source="explicit") for each in newer)]).gil.version == "3.14.0rc1"


def test_the_pair_with_fewest_mismatches_is_the_best_of_unfair_ones():
    worse = replace(GIL, label="worse", compiler="Clang", opt_level="-O0")
    better = replace(GIL, label="better", opt_level="-O2")
    pair = best_pair([worse, better, FREE])
    assert pair.gil.label == "better"
    assert len(pair.mismatches) == 1


def test_a_debug_pair_is_not_preferred_though_it_matches():
    debug = [replace(build, label=f"{build.label}d", debug=True, version="3.14.0") for build in (GIL, FREE)]
    assert best_pair([*debug, GIL, FREE]).gil.label == "3.13"


def test_one_kind_alone_makes_no_pair():
    assert best_pair([GIL]) is None
