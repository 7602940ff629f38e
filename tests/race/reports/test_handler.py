"""What the handler of conflicts records inside the checked program: at once, once, whatever happens around it."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gilscope.toolkit.race import spool
from gilscope.toolkit.race.conflicts import recorder
from gilscope.toolkit.race.conflicts.handler import ConflictHandler
from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.report.model import Frame, HeldLock
from gilscope.toolkit.race.terms import AccessKind, Flag
from gilscope.toolkit.race.verdicts.gather import Gathering, ident
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.race.fakes.program import FakeCore, Program

SOURCE = """
class Account:
    def deposit(self, amount):
        self.balance += amount

    def withdraw(self, amount):
        if self.balance >= amount:
            self.balance -= amount

    def close(self):
        self.balance = 0

    def show(self):
        print(self.balance)

    def rate(self):
        if self.rates is None:
            self.rates = (1, 2)
        return self.rates

    def table(self):
        print(self.rates)
"""
WRITE, READ = AccessKind.WRITE, AccessKind.READ


class Account:
    def __init__(self, name="bob"):
        self.name = name
        self.balance = 100


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_RACE_DEBUG", "1")
    made = Program(tmp_path, SOURCE, "bank.py")
    made.site("deposit", "+= amount", "self.balance", "attr_update", "balance", Flag.AUGMENTED)
    made.site("check", "if self.balance", "self.balance", "attr_read", "balance", Flag.TEST | Flag.SPAN_READ)
    made.site("take", "-= amount", "self.balance", "attr_update", "balance", Flag.AUGMENTED | Flag.GUARD, ["check"])
    made.site("close", "= 0", "self.balance", "attr_write", "balance", Flag.CONSTANT)
    made.site("show", "print", "self.balance", "attr_read", "balance")
    return made


def lines(program):
    return [record for _, record in spool.Reader(str(program.spool)).read()]


def conflicts(program):
    return [record for record in lines(program) if record["t"] == "conflict"]


def test_a_race_is_in_the_spool_before_the_handler_returns(program):
    program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance")
    [head, file, record] = lines(program)
    assert (head["t"], head["core"], head["build"], head["pid"]) == ("process", "fake", "3.14t", os.getpid())
    assert (file["t"], file["path"], file["source"]) == ("file", str(program.path), SOURCE)
    assert (record["t"], record["key"], record["owner"]["label"]) == ("conflict", "balance", "<Account 'bob'>")
    [race] = program.report().races
    assert (race.variable, race.kind) == ("Account.balance of <Account 'bob'>", "lost update")


def test_a_file_that_is_gone_or_changed_at_the_end_is_judged_as_it_was(program):
    program.site("poll", "if self.balance", "self.balance", "attr_read", "balance", Flag.POLL | Flag.TEST)
    program.tell(("close", WRITE), ("poll", READ), Account(), "attr", "balance")
    for change in (lambda: program.path.write_text("#" * 1000), program.path.unlink):
        change()
        [note] = program.report().notes
        assert (note.rule, note.first.place.source) == ("flag", "self.balance = 0")


def test_nothing_is_written_without_a_conflict(program):
    assert not program.handler.any_record
    assert list(program.spool.iterdir()) == []


def test_both_sides_are_complete(program):
    program.core.stacks[4] = ((str(program.path), 14, "main"),)
    program.core.locks[9] = (((str(program.path), 4, "Account.deposit"),), None)
    first = ("close", WRITE, {"context": 4, "locks": (9,)})
    program.tell(first, ("show", READ), Account(), "attr", "balance")
    [race] = program.report().races
    path = str(program.path)
    assert race.first.place == Frame(path=path, line=11, function="Account.close", source="self.balance = 0")
    assert race.first.stack == (Frame(path=path, line=14, function="main", source="print(self.balance)"),)
    assert race.first.started == (Frame(path=path, line=1, function="<module>"),)
    assert race.first.locks == (
        HeldLock(uid=9, name="the lock first taken in Account.deposit",
                 taken=Frame(path=path, line=4, function="Account.deposit")),)
    assert (race.second.thread, race.second.verb) == ("thread-2", "read")


def test_a_pair_of_places_is_one_report_whichever_side_came_first(program):
    for first, second in [("close", "show"), ("show", "close")]:
        kinds = {"close": WRITE, "show": READ}
        program.tell((first, kinds[first]), (second, kinds[second]), Account(), "attr", "balance")
    assert len(program.report().races) == 1


def test_a_partner_read_counts_as_the_place_of_its_write(program):
    program.tell(("deposit", WRITE), ("check", READ), Account(), "attr", "balance")
    [race] = program.report().races
    places = [(str(program.path), 4, "Account.deposit"), (str(program.path), 8, "Account.withdraw")]
    assert race.ident == ident(places, race.base, race.kind)
    assert race.second.place.line == 7       # what is shown is where it happened
    assert race.second.partner.line == 8


def test_one_variable_of_two_instances_is_one_report(program):
    for name in ("bob", "ann"):
        program.tell(("deposit", WRITE), ("deposit", WRITE), Account(name), "attr", "balance")
    assert [race.variable for race in program.report().races] == ["Account.balance of <Account 'bob'>"]
    assert len(conflicts(program)) == 1


def test_two_variables_at_one_place_are_two_reports(program):
    class Savings(Account):
        pass

    for owner in (Account(), Savings()):
        assert program.tell(("deposit", WRITE), ("deposit", WRITE), owner, "attr", "balance") is False
    assert {race.base for race in program.report().races} == {"Account.balance", "Savings.balance"}


def test_the_core_is_told_to_stop_asking(program):
    answers = [program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance") for _ in range(33)]
    assert answers == [False] * 31 + [True] * 2
    assert len(conflicts(program)) == 1


@pytest.fixture(params=[1, -1])
def tell_in_order(program, request):
    """Tell of conflicts in the given order or in the reverse; return the report."""
    def tell(*conflicts):
        for first, second, owner, key, value in conflicts[::request.param]:
            program.tell(first, second, owner, "attr", key, value=value)
        return program.report()
    return tell


def test_a_store_over_another_value_makes_no_conflict_there_a_memo_whoever_came_first(program, tell_in_order):
    program.site("check", "if self.rates", "self.rates", "attr_read", "rates", Flag.TEST | Flag.SPAN_READ)
    program.site("fill", "self.rates =", "self.rates", "attr_write", "rates", Flag.GUARD, ["check"])
    owner = Account()
    owner.rates = (1, 2)
    program.site("table", "print(self.rates)", "self.rates", "attr_read", "rates")
    loaded = ("fill", WRITE), ("table", READ), owner, "rates", NO_VALUE
    stored = ("fill", WRITE), ("fill", WRITE), owner, "rates", (3, 4)
    assert [race.rule for race in tell_in_order(loaded).notes] == ["memo"]
    report = tell_in_order(loaded, stored)
    assert ([race.kind for race in report.races], report.notes) == (["check-then-act", "unsynchronised read/write"], ())


def test_a_store_without_the_lock_makes_no_conflict_there_a_publication_whoever_came_first(program, tell_in_order):
    program.site("publish", "self.balance = 0", "self.balance", "attr_write", "balance")
    owner = Account()
    locked = ("publish", WRITE, {"locks": (7,)}), ("show", READ), owner, "balance", NO_VALUE
    free = ("deposit", WRITE), ("show", READ), owner, "balance", NO_VALUE
    owner.balance = object()
    assert [race.rule for race in tell_in_order(locked).notes] == ["publication"]
    report = tell_in_order(locked, free)
    assert (len(report.races), report.notes) == (2, ())


def test_counts_come_from_the_core_at_the_end(program):
    for _ in range(3):
        program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance")
    assert program.report().races[0].count == 1       # killed before its end
    program.core.told = dict.fromkeys(program.core.told, 50)
    program.handler.finish([("/x/odd.py", "too deep")])
    program.handler.finish()
    report = program.report()
    assert (report.races[0].count, report.unrewritten) == (50, (("/x/odd.py", "too deep"),))


def test_a_forked_child_counts_from_the_fork_on(program):
    program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance")
    program.core.told = dict.fromkeys(program.core.told, 50)
    program.handler.after_fork()
    program.core.told = dict.fromkeys(program.core.told, 53)
    program.handler.finish()
    assert program.report().races[0].count == 3


def test_sections_hear_of_every_race_again(program):
    program.handler.options["sections"] = True
    for name in ("test_a", "test_b"):
        program.handler.section(name)
        for _ in range(40):
            assert program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance") is False
        assert program.handler.in_section()
    program.handler.section("test_c")
    assert not program.handler.in_section()
    gathering = Gathering(str(program.spool))
    assert [len(gathering.report(section=name).races) for name in ("test_a", "test_b", "test_c")] == [1, 1, 0]
    assert len(program.report().races) == 1


def test_a_comment_with_a_reason_suppresses_and_is_used(program):
    program.site("noted", "+=", "self.balance", "attr_update", "balance", Flag.AUGMENTED, note="counted at night")
    program.tell(("noted", WRITE), ("show", READ), Account(), "attr", "balance")
    program.handler.finish()
    report = program.report()
    assert not report.races
    assert [race.reason for race in report.suppressed] == ["counted at night"]
    assert not [text for text in report.unused_suppressions if "bank.py:4" in text]


def test_the_handler_takes_no_order_from_locks_and_gives_none(program):
    program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance")
    assert program.core.muted == 0


def test_a_failure_inside_never_reaches_the_program(program, capfd):
    program.handler.describe_thread = lambda uid: 1 / 0
    assert program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance") is False
    assert program.core.muted == 0
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_ctrl_c_inside_the_handler_is_passed_on(program):
    def interrupted(_uid):
        raise KeyboardInterrupt

    program.handler.describe_thread = interrupted
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance")
            for _ in range(10**6):
                pass
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_spool_that_is_gone_stops_nothing(program):
    program.spool.rmdir()
    program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance")


def test_no_code_of_the_program_runs(program):
    class Hostile:
        def _stop(self, *_):
            raise SystemExit("code of the program ran")

        __getattribute__ = __getattr__ = __repr__ = __str__ = __eq__ = __hash__ = _stop

    first = ("take", WRITE, {"span": "check"})
    program.tell(first, ("take", WRITE), Hostile(), "attr", "balance", value=Hostile())
    program.tell(first, ("check", READ), {}, "item", Hostile(), "span", value=Hostile())
    races = program.report().races
    assert {race.variable for race in races} >= {"Account.balance[<Hostile>]"}
    assert {race.base for race in races} == {"Hostile.balance", "Account.balance"}


def test_threads_that_meet_lose_no_race(program):
    owners = [type(f"Account{number}", (Account,), {})() for number in range(4)]
    gate = threading.Barrier(8)     # 8 x 4 conflicts of a pair of sites: the core is not told to stop before the last

    def hear(number):
        gate.wait()
        for owner in owners[number % 4:] + owners[:number % 4]:
            program.tell(("deposit", WRITE), ("deposit", WRITE), owner, "attr", "balance")

    threads = [threading.Thread(target=hear, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(json.dumps(record) for record in lines(program))
    report = program.report()
    assert len({race.base for race in report.races}) == 4
    assert report.processes == 1


CHILD = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tests.race.fakes.program import FakeCore, Program
from gilscope.toolkit.race.terms import Flag, AccessKind
program = Program(Path(sys.argv[1]), "total += 1\\nother += 1\\n")
program.site("one", "total", "total", "global_update", "total", Flag.AUGMENTED)
program.site("two", "other", "other", "global_update", "other", Flag.AUGMENTED)
spaces = {"__name__": "jobs", "__builtins__": {}}
program.tell(("one", AccessKind.WRITE), ("one", AccessKind.WRITE), spaces, "item", "total")
if os.fork() == 0:
    program.handler.after_fork()
    for _ in range(3):
        program.tell(("one", AccessKind.WRITE), ("one", AccessKind.WRITE), spaces, "item", "total")
    program.tell(("two", AccessKind.WRITE), ("two", AccessKind.WRITE), spaces, "item", "other")
    program.handler.finish()
    os._exit(3)
os.wait()
os.closerange(3, 100)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_fork_exit_and_kill_lose_nothing(tmp_path):
    from gilscope.toolkit.race.verdicts.gather import load

    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD, str(tmp_path)], check=False, timeout=PATIENCE,
                           cwd=ROOT)
    assert ended.returncode == -signal.SIGKILL
    report = load(str(tmp_path / "spool"))
    found = {race.variable: race.count for race in report.races}
    assert found == {"global other in jobs.py": 1, "global total in jobs.py": 3}    # also what the parent has recorded
    assert report.processes == 2


def test_a_line_that_was_cut_short_costs_no_other(program):
    program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance")
    [file] = program.spool.iterdir()
    file.write_bytes(file.read_bytes() + b'{"t": "race", "num')
    assert len(program.report().races) == 1


@pytest.mark.parametrize("refused", ["_open", "_write"])
def test_a_record_that_cannot_be_written_is_told_and_costs_no_other(program, monkeypatch, refused):
    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    program.tell(("deposit", WRITE), ("deposit", WRITE), Account(), "attr", "balance")
    with monkeypatch.context() as patch:
        patch.setattr(spool, refused, full)
        program.tell(("close", WRITE), ("close", WRITE), Account(), "attr", "balance")
    program.tell(("show", READ), ("deposit", WRITE), Account(), "attr", "balance")
    report = program.report()
    assert len(report.races) == 2
    assert (report.lost, report.unrewritten) == ((f"process {os.getpid()}",), ())


def imported_with(module):
    code = (f"import sys; before = set(sys.modules); import {module}; "
            "print(' '.join(sorted(set(sys.modules) - before)))")
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                              cwd=ROOT).stdout.split())


def test_a_conflict_is_recorded_without_what_judges_it():
    found = imported_with("gilscope.toolkit.race.conflicts.recorder")
    ours = {name.removeprefix("gilscope.toolkit.race.") for name in found if name.startswith("gilscope.toolkit.race.")}
    assert ours == {
        "conflicts", "conflicts.objects", "conflicts.recorder", "core", "safe_inspection", "site", "spool", "terms"}
    assert not found & {"ast", "dataclasses", "json", "re", "tokenize", "typing"}


def test_the_handler_imports_little():
    found = imported_with("gilscope.toolkit.race.conflicts.handler")
    assert found <= {"gilscope", "gilscope.toolkit", "gilscope.toolkit.race", "gilscope.toolkit.race.conflicts",
                          "gilscope.toolkit.race.conflicts.handler", "gilscope.toolkit.race.spool", "_json",
                          "__future__"}


@pytest.mark.parametrize("value", [
    None, True, False, 3, -1.5, 'é\ud800\n"', [1, [2, "x"]], {"a": {"b": []}}, (1, 2),
])
def test_what_is_written_is_json(value):
    assert json.loads(spool.dumps(value)) == (list(value) if isinstance(value, tuple) else value)


def test_threads_that_meet_their_first_conflicts_together_share_one_record(tmp_path, monkeypatch):
    together = threading.Barrier(4)
    made = recorder.Recorder.__init__

    def slowly(self, *arguments):
        made(self, *arguments)
        together.wait(PATIENCE)   # nobody goes on before everybody has made one

    monkeypatch.setattr(recorder.Recorder, "__init__", slowly)
    handler = ConflictHandler(FakeCore(), str(tmp_path), lambda _uid: ("", ()))
    with ThreadPoolExecutor(4) as pool:
        assert len({id(each) for each in pool.map(lambda _: handler.recorder(), range(4))}) == 1
