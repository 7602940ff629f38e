"""Fleets over a network that is slow, loses packets, and fails: each host in a namespace of its own."""

import contextlib
import json
from importlib.util import find_spec

import pytest

from gilscope.toolkit.fleet.start_dask import scheduler_command, worker_command
from tests.fleet.network import MIDDLE, Network, lacking
from tests.fleet.test_end_to_end import LITTLE, fleets, states  # noqa: F401  a fixture
from tests.patience import PATIENCE, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.newest,
              pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")]

PORT = 8786
ADDRESS = f"tcp://{MIDDLE}:{PORT}"


@pytest.fixture
def network():
    if why := lacking():
        pytest.skip(why)
    with Network() as made:
        yield made


@pytest.fixture
def spread(fleets, network):  # noqa: F811
    """Return the fleets of the network: client and scheduler in its middle, hosts where they are added."""
    # Namespaces reach no package index: the build gets what it needs here.
    assert fleets.call("run", *LITTLE, "--rounds", "1", "--label", "before")[0] == 0
    fleets.at = network.at("middle")
    return fleets


@contextlib.contextmanager
def cluster(fleets, network, *hosts, **environment):  # noqa: F811
    """Yield the workers by name, when the scheduler knows all of them."""
    with contextlib.ExitStack() as running:
        told = fleets.temporary / "scheduler.json"
        scheduler = running.enter_context(fleets.dask(
            [*scheduler_command(MIDDLE, PORT), "--scheduler-file", str(told)], fleets.at, **environment))
        wait_until(told.exists, scheduler)   # who comes before it is ready, it may leave waiting
        yield {name: running.enter_context(worker(fleets, network, name, **environment)) for name in hosts}


def worker(fleets, network, name, **environment):  # noqa: F811
    command = [*worker_command(ADDRESS, name), "--host", network.addresses[name]]
    return fleets.dask(command, network.at(name), **environment)


def wait_for(fleets, hosts):  # noqa: F811
    """Wait until the scheduler knows the hosts, and return what `gilscope fleet` says of them."""
    for _ in range(100):
        code, out, err = fleets.call("fleet", ADDRESS, "--json")
        assert code in {0, 1, 3}, err   # 3: nobody is there yet
        if code != 3 and sorted(json.loads(out)["hosts"]) == sorted(hosts):
            return err
    raise AssertionError(err)


def test_a_run_over_a_slow_network_that_loses_packets(spread, network):
    for name in ("rome", "oslo"):
        network.host(name, delay=0.03, loss=0.05)
    with cluster(spread, network, "rome", "oslo"):
        assert "not encrypted and can be reached from other machines" in wait_for(spread, ("rome", "oslo"))
        code, out, err = spread.call("run", *LITTLE, "--rounds", "3", "--fleet", ADDRESS, "--label", "far")
    assert code == 0, err
    assert "are one machine: their rounds are counted together" in " ".join(out.split())
    assert states(spread.fleet("far")) == {"oslo": "finished", "rome": "finished"}
    assert spread.rounds("far", "rome") == spread.rounds("far", "oslo") == (0, 1, 2)
    assert all(wire.carried and wire.lost for wire in network.wires.values())


def test_a_host_that_loses_the_network_goes_on_when_it_is_back(spread, network):
    soon = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s"}   # until nobody acknowledges: the least it takes, of 30 s
    for name in ("rome", "oslo"):
        network.host(name)
    with cluster(spread, network, "rome", "oslo", **soon) as workers:
        wait_for(spread, ("rome", "oslo"))
        with spread.running("--rounds", "8", address=ADDRESS, label="cut") as running:
            spread.wait_for_rounds("cut", "rome", 2, running)
            network.wires["rome"].cut = True
            said = next((line for line in running.stderr if "went away" in line), "")
            assert said.startswith("rome went away")
            kept = spread.values("cut", "rome")
            workers["rome"].wait(PATIENCE)   # it has given up the scheduler as well
            network.wires["rome"].cut = False
            with worker(spread, network, "rome", **soon):
                said = running.stderr.read()
                assert running.wait(PATIENCE) == 0, said
    assert f"rome goes on after {len({number for _, number in kept})} rounds" in said
    assert kept.items() <= spread.values("cut", "rome").items()   # and they were not measured again
    assert states(spread.fleet("cut")) == {"oslo": "finished", "rome": "finished"}
    assert spread.rounds("cut", "rome") == spread.rounds("cut", "oslo") == tuple(range(8))
