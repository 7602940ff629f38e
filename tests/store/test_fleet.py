"""fleet.json: what is written comes back, damage is refused by name, and nobody's run is left running."""

import dataclasses
import json

import pytest

from gilscope.toolkit.errors import BadFileError, LabelTakenError, SaveError
from gilscope.toolkit.store import Fleet, FleetStore, Host, HostState, Store, is_fleet, read_fleet

HOSTS = (Host(name="host-1", state=HostState.FINISHED),
         Host(name="host-2", state=HostState.LOST, note="it went away in round 3"))
FLEET = Fleet(hosts=HOSTS, command=("primes", "--rounds", "12"))


@pytest.fixture
def folder(tmp_path):
    store = FleetStore.create("label", tmp_path)
    store.save(FLEET)
    store.close()
    return store.path


def change(folder, **fields):
    file = folder / "fleet.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def test_a_fleet_comes_back(folder):
    assert is_fleet(folder)
    assert read_fleet(folder) == FLEET


def test_a_host_is_running_only_while_somebody_holds_the_run(folder):
    running = dataclasses.replace(FLEET, hosts=(Host(name="host-1", state=HostState.RUNNING), HOSTS[1]))
    store, before = FleetStore.reopen(folder)
    store.save(running)
    assert (before, read_fleet(folder)) == (FLEET, running)
    store.close()
    assert [host.state for host in read_fleet(folder).hosts] == [HostState.STOPPED, HostState.LOST]


def test_two_do_not_write_the_same_fleet(folder, tmp_path):
    with pytest.raises(LabelTakenError, match="exists already"):
        FleetStore.create("label", tmp_path)
    store, _ = FleetStore.reopen(folder)
    with pytest.raises(LabelTakenError, match="another gilscope is writing"):
        FleetStore.reopen(folder)
    store.close()


def test_a_host_has_a_run_of_its_own_in_the_folder_of_the_fleet(folder):
    store = Store.create("host-1", folder)
    store.close()
    assert store.path == folder / "host-1"


@pytest.mark.parametrize(("fields", "said"), [
    ({"format": "gilscope run"}, "not a gilscope fleet: its format is 'gilscope run'"),
    ({"version": 2}, "has version 2, this gilscope reads 1"),
    ({"hosts": []}, "hosts has 0 entries"),
    ({"hosts": {"host-1": "finished"}}, "hosts is {'host-1': 'finished'}, not a list"),
    ({"hosts": [{"name": "host-1", "state": "asleep"}]}, "hosts[0].state is 'asleep', not running or finished"),
    ({"hosts": [{"name": "host-1"}]}, "hosts[0] lacks state"),
    ({"hosts": [{"name": "host-1", "state": "lost", "address": "10.0.0.1"}]}, "has an unknown field 'address'"),
    ({"hosts": [{"name": "../up", "state": "lost"}]}, "the name '../up', which cannot be a folder's"),
    ({"hosts": [{"name": "a", "state": "lost"}, {"name": "a", "state": "lost"}]}, "hosts has 'a' 2 times"),
    ({"command": "run primes"}, "command is 'run primes', not a list"),
])
def test_damage_is_named(folder, fields, said):
    change(folder, **fields)
    with pytest.raises(BadFileError) as caught:
        read_fleet(folder)
    assert said in str(caught.value)
    assert str(folder / "fleet.json") in str(caught.value)


def test_half_a_file_is_refused(folder):
    file = folder / "fleet.json"
    file.write_text(file.read_text()[:40])
    with pytest.raises(BadFileError, match=r"fleet\.json is cut off or not JSON"):
        read_fleet(folder)


def test_a_disk_that_cannot_be_written_leaves_what_was_there(folder):
    store, _ = FleetStore.reopen(folder)
    (folder / ".fleet.json.part").mkdir()   # what the new file would be written to
    with pytest.raises(SaveError, match="everything saved before is intact"):
        store.save(dataclasses.replace(FLEET, hosts=HOSTS[:1]))
    store.close()
    assert read_fleet(folder) == FLEET
