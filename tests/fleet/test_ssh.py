"""A cluster by SSH: a server of our own on this machine, and hosts that the user's ~/.ssh/config names."""

import contextlib
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from gilscope.toolkit.processes.supervised import Supervised
from tests.conformance.builds import ROOT
from tests.fleet.test_end_to_end import LITTLE, MARK, fleets, states  # noqa: F401  a fixture
from tests.patience import PATIENCE, wait_until

SSHD = shutil.which("sshd", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))
pytestmark = [pytest.mark.slow, pytest.mark.newest,
              pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed"),
              pytest.mark.skipif(find_spec("asyncssh") is None, reason="asyncssh is not installed"),
              pytest.mark.skipif(SSHD is None, reason="sshd is not installed")]

SERVER = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
SetEnv {environment}
"""
CLIENT = """
Host node1 node2
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/user
  UserKnownHostsFile {folder}/known
"""


@contextlib.contextmanager
def server(fleets, folder):  # noqa: F811
    """Yield the home folder of a user who reaches node1 and node2, and the server that they are."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {MARK: fleets.mark, "GILSCOPE_MACHINE": fleets.temporary, "TMPDIR": fleets.temporary,
                   "PYTHONPATH": ROOT}
    words = " ".join(f"{name}={value}" for name, value in environment.items())
    (folder / "server").write_text(SERVER.format(port=port, folder=folder, environment=words))
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text(CLIENT.format(port=port, folder=folder, user=getpass.getuser()))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)   # it does not start without
    with (folder / "output").open("wb") as output, Supervised(
        [SSHD, "-D", "-e", "-f", str(folder / "server")], stdout=output, stderr=output,
    ) as running:
        wait_until(lambda: "listening" in (folder / "output").read_text(), running)
        yield home


def test_hosts_by_ssh_are_called_as_they_were_named(fleets, tmp_path_factory):  # noqa: F811
    with (server(fleets, tmp_path_factory.mktemp("ssh")) as home,
          fleets.start("fleet", "start", "--ssh", "node1", "node2", HOME=str(home)) as starting):
        try:
            line = starting.stdout.readline()
            found = re.search(r"at (tcp://\S+)", line)
            assert found, line + starting.stderr.read()
            code, out, err = fleets.call("run", *LITTLE, "--rounds", "2", "--fleet", found[1], "--label", "by-ssh")
            assert code == 0, err
            assert "are one machine: their rounds are counted together" in " ".join(out.split())
            assert states(fleets.fleet("by-ssh")) == {"node1": "finished", "node2": "finished"}
        finally:
            starting.send_signal(signal.SIGINT)
            _, err = starting.communicate(timeout=PATIENCE)
    assert starting.returncode == 130, err   # and the fixture looks for what is left of the hosts


def test_a_machine_that_cannot_be_reached_is_named(fleets, tmp_path_factory):  # noqa: F811
    with server(fleets, tmp_path_factory.mktemp("ssh")) as home:
        (home / ".ssh" / "config").write_text("Host node1\n  HostName 127.0.0.1\n  Port 9\n")
        code, _, err = fleets.call("fleet", "start", "--ssh", "node1", HOME=str(home))
    assert code == 3
    assert "no cluster on node1" in err
    assert len(err.splitlines()) == 1, err
