"""What would not match between hosts is said, and nothing else."""

import copy
import dataclasses

from gilscope.toolkit.fleet.host_differences import common_pair, differences, pair_differences
from tests.fakes import MACHINE, make_build


def host(**changes):
    facts = {
        "gilscope": "0.1.0", "code": "c0de" * 16, "python": "3.13.0",
        "packages": {"pyperf": "2.10", "distributed": "2026.7"},
        "machine": dataclasses.asdict(MACHINE), "others": 0.1, "load": 0.2, "pair": ["3.14", "3.14t"],
        "builds": [dataclasses.asdict(make_build(label)) for label in ("3.14", "3.14t")],
    }
    return copy.deepcopy(facts) | changes


def builds(*made):
    return [dataclasses.asdict(each) for each in made]


def test_hosts_that_are_alike_need_no_word():
    facts = {"a": host(), "b": host(machine=dataclasses.asdict(dataclasses.replace(MACHINE, cpu_model="Other")))}
    assert differences(facts) == []
    assert common_pair(facts) == ["3.14", "3.14t"]


def test_programs_that_differ_are_named_with_who_has_them():
    facts = {"a": host(), "b": host(packages={"pyperf": "2.9", "distributed": "2026.7"}), "c": host()}
    assert differences(facts) == ["pyperf is not the same: 2.10 on a, c; 2.9 on b"]


def test_one_version_with_other_code_is_seen():
    assert differences({"a": host(), "b": host(code="f" * 64)}) == [
        "the code of gilscope is not the same: c0dec0de on a; ffffffff on b"]


def test_a_build_that_was_built_otherwise_is_said():
    other = make_build("3.14", compiler="Clang 18", pgo=True)
    facts = {"a": host(), "b": host(builds=builds(other, make_build("3.14t")))}
    assert differences(facts) == [
        "build 3.14, compiler: a has GCC 12.2.0, b has Clang 18",
        "build 3.14, profile-guided optimization (PGO): b has it, a does not"]


def test_a_build_that_one_host_lacks_is_said_and_so_is_another_default():
    facts = {"a": host(), "b": host(builds=builds(make_build("3.13"), make_build("3.14")), pair=[])}
    assert differences(facts) == [
        "b has the build 3.13, a has not", "a has the build 3.14t, b has not",
        "hosts measure different builds unless --builds names them (a: 3.14, 3.14t; b: none)"]
    assert common_pair(facts) == []


def test_builds_that_are_not_measured_may_differ():
    facts = {"a": host(), "b": host(builds=builds(make_build("3.13"), make_build("3.14")), pair=[])}
    assert differences(facts, ["3.14"]) == []
    assert differences(facts, ["3.14", "3.14t"]) == ["a has the build 3.14t, b has not"]


def test_a_label_that_means_another_gil_is_said():
    facts = {"a": host(), "b": host(builds=builds(make_build("3.14", free_threaded=True), make_build("3.14t")))}
    assert "build 3.14 has the GIL on one of a and b only" in differences(facts)


def test_default_builds_that_differ_are_a_difference_of_their_own():
    without_pair = host(builds=builds(make_build("3.14")), pair=[])
    assert [*pair_differences({"a": host(), "b": host()})] == []
    assert [*pair_differences({"a": host(), "b": without_pair})] == [
        "hosts measure different builds unless --builds names them (a: 3.14, 3.14t; b: none)"]
