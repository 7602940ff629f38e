"""Signals at random moments of every command: nothing of it is left, nothing is shown that is not for the user."""

import os
import random
import signal
import time

import pytest

from gilscope.toolkit.commands.stopping import SIGNALLED
from tests.conftest import SEED
from tests.faults.commands import COMMANDS, LIMIT, Disturbed, project

pytestmark = pytest.mark.newest

WAYS = {"INT": (signal.SIGINT,), "TERM": (signal.SIGTERM,), "HUP": (signal.SIGHUP,), "KILL": (signal.SIGKILL,),
        "double INT": (signal.SIGINT, signal.SIGINT)}
TRIES = 7 if os.environ.get("GILSCOPE_FAULTS") == "full" else 1    # 9 commands, 5 ways: 315 of them
CASES = [(name, way, number) for number in range(TRIES) for name in COMMANDS for way in WAYS]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "way", "number"), CASES)
def test_stopped_command_leaves_nothing(name, way, number, tmp_path):
    chance = random.Random(f"{SEED} {name} {way} {number}")
    command = COMMANDS[name]
    disturbed = Disturbed(project(tmp_path), command.words)
    disturbed.wait_until_it_handles_signals()
    # Also early, where imports take the time.
    time.sleep(chance.uniform(0, chance.choice((0.3, command.seconds))))
    group = chance.random() < 0.5
    for each in WAYS[way]:
        disturbed.send(each, group=group)
        time.sleep(chance.uniform(0, 0.2) if len(WAYS[way]) > 1 else 0)
    code = disturbed.process.wait(LIMIT)
    said = disturbed.said()
    assert "Traceback" not in said, said
    stopped = {SIGNALLED + WAYS[way][0], -WAYS[way][0]}
    assert code in stopped | command.codes, said
    if way == "KILL":      # whoever is killed cannot clean up: the next one does
        assert Disturbed(tmp_path, ("report",), disturbed.temporary).process.wait(LIMIT) == 0
    assert not disturbed.left(), said
    disturbed.temporary.rmdir()
