"""Who is who in a cluster, and who may listen."""

import pytest

from gilscope.toolkit.fleet.dask_cluster import (
    FleetWorker,
    another_version,
    is_open,
    named,
    naming_notes,
    other_versions,
)


def workers(*names, resources=("gilscope",)):
    """Return workers as dask tells of them; None has no name of its own, which is its address then."""
    return {f"tcp://10.0.0.{number}:1": {"name": f"tcp://10.0.0.{number}:1" if name is None else name,
                                         "resources": dict.fromkeys(resources, 1.0)}
            for number, name in enumerate(names, start=1)}


def names_of(told, known=None):
    return {each.address.removeprefix("tcp://10.0.0.").removesuffix(":1"): each.name
            for each in named(told, {} if known is None else known)}


def test_a_host_is_called_as_its_worker_is():
    assert names_of(workers("rome", "oslo")) == {"1": "rome", "2": "oslo"}
    assert [each.name for each in named(workers("rack-10", "rack-9"), {})] == ["rack-9", "rack-10"]


@pytest.mark.parametrize("name", [None, 0, "7", "../up", "", "a b", "a/b", ".hidden", "x" * 200])
def test_a_name_that_is_none_becomes_a_number(name):
    assert names_of(workers(name)) == {"1": "host-1"}


def test_one_name_twice_is_nobodys():
    assert names_of(workers("same", "same", "host-1")) == {"1": "host-2", "2": "host-3", "3": "host-1"}


def test_a_host_keeps_its_name_when_others_go_and_come():
    told, known = workers(None, None, None), {}
    assert names_of(told, known) == {"1": "host-1", "2": "host-2", "3": "host-3"}
    del told["tcp://10.0.0.1:1"]
    assert names_of(told, known) == {"2": "host-2", "3": "host-3"}
    told |= {"tcp://10.0.0.9:1": told["tcp://10.0.0.2:1"]}
    assert names_of(told, known) == {"2": "host-2", "3": "host-3", "9": "host-4"}


def test_a_named_host_that_comes_back_elsewhere_is_the_same():
    known = {}
    assert named(workers("rome"), known) == [FleetWorker(name="rome", address="tcp://10.0.0.1:1")]
    back = {"tcp://10.0.0.1:99": {"name": "rome", "resources": {"gilscope": 1}}}
    assert named(back, known) == [FleetWorker(name="rome", address="tcp://10.0.0.1:99")]


def test_workers_that_do_not_offer_to_measure_are_no_hosts():
    assert named(workers("a", resources=()), {}) == []
    assert named({"tcp://10.0.0.1:1": {"name": "a"}}, {}) == []


@pytest.mark.parametrize(("names", "said"), [
    (["rome", None, "7", 3], []),   # a number is dask's own
    (["../x y"], ["the worker named '../x y' is called host-1: no folder can have that name"]),
    (["same", "same", "rome"], ["the workers named 'same' are called host-1, host-2: several have that name"]),
])
def test_host_that_is_not_called_as_its_worker_is_told(names, said):
    told, known = workers(*names), {}
    named(told, known)
    assert naming_notes(told, known) == said


def test_workers_that_are_no_hosts_are_told():
    told = {f"tcp://10.0.0.{number}:1": {"name": "a"} for number in range(1, 7)}
    (said,) = naming_notes(told, {})
    assert said.startswith("6 workers have no `--resources gilscope=1` and measure nothing: tcp://10.0.0.1:1, ")
    assert said.endswith(", tcp://10.0.0.4:1 and 2 more")
    assert naming_notes({"tcp://10.0.0.1:1": {"name": "a"}}, {}) == [
        "1 worker has no `--resources gilscope=1` and measures nothing: tcp://10.0.0.1:1"]


@pytest.mark.parametrize(("address", "expected"), [
    ("tcp://127.0.0.1:8786", False), ("127.0.0.1:8786", False), ("localhost:8786", False), ("tcp://[::1]:8786", False),
    ("tls://10.0.0.5:8786", False), ("wss://example.org", False),
    ("tcp://10.0.0.5:8786", True), ("10.0.0.5:8786", True), ("example.org:8786", True), ("ws://10.0.0.5:1", True),
])
def test_an_address_that_others_can_listen_to_is_known(address, expected):
    assert is_open(address) is expected


def test_another_version_of_gilscope_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("gilscope.__version__", "2.0")
    assert other_versions({"a": "2.0", "b": "2.0"}) == {}
    others = other_versions({"a": "2.0", "b": "1.9", "c": ""})
    assert another_version(others).startswith("this is gilscope 2.0, and b has 1.9, c has none: ")
