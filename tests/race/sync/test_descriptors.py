"""Order through the operating system: pipes, sockets, locked files, child processes."""

import fcntl
import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests.race.sync.test_primitives import in_turn


@pytest.fixture
def closing():
    with ExitStack() as stack:
        yield stack


def passed_on(core, send, receive):
    """Return what races if one thread writes around `send`, and then another one around `receive`."""
    def sender():
        core.write("before")
        send()
        core.write("late")

    def receiver():
        core.write("early")
        receive()
        core.write("before")
        core.write("late")

    in_turn(sender, receiver)
    return core.raced


def pipe(closing):
    reading, writing = os.pipe()
    closing.callback(os.close, reading)
    closing.callback(os.close, writing)
    return lambda: os.write(writing, b"."), lambda: os.read(reading, 1)


def pair(closing):
    here, there = map(closing.enter_context, socket.socketpair())
    return lambda: here.send(b"."), lambda: there.recv_into(bytearray(1))


WAYS = {"pipe": pipe, "pair": pair}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_reader_comes_after_writer(core, way, closing):
    send, receive = way(closing)
    assert passed_on(core, send, receive) == {"late"}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_another_pipe_or_pair_orders_nothing(core, way, closing):
    send, _ = way(closing)
    other_send, receive = way(closing)
    other_send()
    assert passed_on(core, send, receive) == {"before", "late"}


def test_a_connection_orders_nothing(core, closing):
    server = closing.enter_context(socket.create_server(("127.0.0.1", 0)))
    client = closing.enter_context(socket.create_connection(server.getsockname()))
    accepted = closing.enter_context(server.accept()[0])
    raced = passed_on(core, lambda: client.sendall(b"."), lambda: accepted.recv_into(bytearray(1)))
    assert raced == {"before", "late"}


def test_the_writer_does_not_come_after_the_reader(core, closing):
    send, receive = pair(closing)

    def receiver():
        core.write("x")
        receive()

    def sender():
        send()
        core.write("x")

    send()
    in_turn(receiver, sender)
    assert core.raced == {"x"}


@pytest.mark.parametrize(("lock", "raced"), [("flock", {"outside", "two"}), ("lockf", {"outside", "two", "one"})])
def test_locked_file_orders_its_holders(core, lock, raced, tmp_path):
    def hold(name):
        with (tmp_path / name).open("w") as file:
            getattr(fcntl, lock)(file, fcntl.LOCK_EX)     # `lockf` locks for the process
            core.write(name)
            getattr(fcntl, lock)(file, fcntl.LOCK_UN)
            core.write("outside")

    def of_both():
        hold("one")
        core.write("two")

    in_turn(lambda: hold("one"), lambda: hold("two"), of_both)
    assert core.raced == raced


def test_whoever_waits_for_a_child_comes_after_its_start(core):
    children = []

    def start():
        core.write("before")
        children.append(subprocess.Popen([sys.executable, "-S", "-c", "pass"]))
        core.write("late")

    def wait():
        assert children[0].wait() == 0
        core.write("before")
        core.write("late")

    in_turn(start, wait)
    assert core.raced == {"late"}
