"""Records of all processes of a run become one report, with sentences that name the lock and the repair."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.race import spool
from gilscope.toolkit.race.program import start
from gilscope.toolkit.race.report import json_, sarif, sentences, text
from gilscope.toolkit.race.report.locksets import Locksets, OwnedVariable
from gilscope.toolkit.race.report.model import ConfirmationOutcome, HeldLock, Spot
from gilscope.toolkit.race.report.settings import Suppression
from gilscope.toolkit.race.terms import AccessKind, Flag, RaceKind, Remedy, Severity, ValueFact
from gilscope.toolkit.race.verdicts import advice, gather, source_context
from gilscope.toolkit.race.verdicts.gather import load
from gilscope.toolkit.race.verdicts.other_python import load_with
from tests.faults.damage import at, kind_of, places
from tests.race.fakes.program import Program
from tests.race.fakes.report import LOCK, ROOT, frame, make_access, make_race

SOURCE = """
class Ledger:
    def add(self, word):
        with self.lock:
            self.counts[word] += 1

    def merge(self, word):
        with self.lock:
            self.counts[word] = 0

    def forget(self, word):
        with self.lock:
            self.counts[word] = None

    def peek(self, word):
        return self.counts[word]

stop = False
"""
LOCKED = {"locks": (5,)}


@pytest.fixture
def program(tmp_path):
    made = Program(tmp_path, SOURCE, "ledger.py")
    made.core.locks[5] = (((str(made.path), 4, "Ledger.add"),), None)
    made.site("add", "+= 1", "self.counts[word]", "item_proxy", "", Flag.AUGMENTED)
    made.site("merge", "= 0", "self.counts[word]", "item_write", "")
    made.site("forget", "= None", "self.counts[word]", "item_write", "")
    made.site("peek", "return", "self.counts[word]", "item_read", "")
    return made


def conflicts(program, labels):
    for label in labels:
        program.tell((label, AccessKind.WRITE, LOCKED), ("peek", AccessKind.READ), {}, "item", "the")


def test_the_missing_lock_is_told_by_all_places_of_the_variable(program):
    conflicts(program, ["add", "merge", "forget"])
    races = program.report().races
    assert len(races) == 3
    assert {race.missing for race in races} == {"3 of 4 places hold Ledger.lock; ledger.py:16 does not."}
    assert {race.variable for race in races} == {"Ledger.counts['the']"}
    assert all("Hold Ledger.lock over ledger.py:16, too" in race.repair for race in races)


def test_processes_of_one_run_are_merged(program, tmp_path):
    conflicts(program, ["add"])
    program.core.told = dict.fromkeys(program.core.told, 5)
    program.handler.finish()
    [file] = program.spool.iterdir()
    file.with_name("other.jsonl").write_bytes(file.read_bytes())
    report = program.report()
    assert (len(report.races), report.races[0].count, report.processes) == (1, 10, 2)


def test_the_graver_record_of_a_pair_wins(program):
    conflicts(program, ["merge"])
    [file] = program.spool.iterdir()
    head, source, race = file.read_text().splitlines()
    note = json.dumps({**json.loads(race), "present": ValueFact.KNOWN})     # of a reference
    file.write_text(f"{head}\n{source}\n{note}\n")
    assert [race.rule for race in program.report().notes] == ["publication"]
    for order in ([note, race], [race, note]):
        file.write_text("\n".join([head, source, *order, ""]))
        assert [race.severity for race in program.report().races] == ["race"]
        assert not program.report().notes


@pytest.mark.parametrize("is_known", [True, False])
def test_a_source_of_a_newer_python_is_judged_by_the_programs(program, monkeypatch, is_known):
    program.site("stop", "stop =", "stop", "global_write", "stop", Flag.CONSTANT)
    program.site("ask", "return", "stop", "global_read", "stop", Flag.TEST)
    module = {"__name__": "ledger", "__builtins__": {}}
    program.tell(("stop", AccessKind.WRITE), ("ask", AccessKind.READ), module, "item", "stop")
    suppressions = [Suppression(variable="Pool.*", kind=None, file=None, why="gone")]
    monkeypatch.setattr(source_context, "_tree", lambda _source: None)
    report = load_with(sys.executable if is_known else "/bin/false", str(program.spool), suppressions)
    assert [note.rule for note in report.notes] == ["flag"] * is_known
    assert len(report.races) == (not is_known)     # without a tree, nothing says that it is harmless
    assert len(report.unused_suppressions) == 1


def test_each_side_of_a_race_is_described_once_however_often_it_was_recorded(program, monkeypatch):
    conflicts(program, ["add", "merge", "forget"])
    [file] = program.spool.iterdir()
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines, *lines[2:] * 10, ""]))
    described, describe = [], advice._access
    monkeypatch.setattr(advice, "_access", lambda side, *rest: described.append(side) or describe(side, *rest))
    assert len(program.report().races) == 3
    assert len(described) == 2 * 3


def test_an_ident_is_the_same_in_every_run_and_another_for_another_race(program):
    conflicts(program, ["add", "merge"])
    first = {race.ident for race in program.report().races}
    assert len(first) == 2
    assert {race.ident for race in program.report().races} == first


def test_the_head_says_what_was_run(program):
    conflicts(program, ["add"])
    report = program.report()
    assert (report.target, report.build, report.core) == ("ledger.py", "3.14t", "fake")
    assert report.root == str(program.folder)


def test_suppressions_of_the_project(program):
    conflicts(program, ["add", "merge"])
    entries = [Suppression(variable="Ledger.counts*", kind="lost update", file="ledger.py", why="an estimate"),
               Suppression(variable="Ledger.counts", kind="unsync*", file=None, why="shown to nobody"),
               Suppression(variable="Pool.*", kind=None, file=None, why="gone")]
    report = program.report(suppressions=entries)
    assert not report.races
    assert {race.reason for race in report.suppressed} == {"shown to nobody"}
    unused = ["{variable = 'Ledger.counts*', kind = 'lost update', file = 'ledger.py'}", "{variable = 'Pool.*'}"]
    assert report.unused_suppressions == tuple(
        f"the entry {entry} of [tool.gilscope.race] suppress suppresses nothing in this run" for entry in unused)


@pytest.mark.parametrize("other", ["pipe", "link", "folder"])
def test_what_stands_in_the_place_of_the_records_is_told_and_not_waited_for(program, other):
    conflicts(program, ["add"])
    assert start.has_records(str(program.spool))
    place = next(program.spool.glob("*.jsonl"))
    place.unlink()
    {"pipe": os.mkfifo, "link": lambda path: path.symlink_to("/dev/zero"), "folder": Path.mkdir}[other](place)
    conflicts(program, ["merge"])   # loses what it writes, and waits for nobody
    assert start.has_records(str(program.spool))
    report = program.report()
    assert not report.races
    assert report.lost == (f"process {os.getpid()}",)
    assert "the program has changed the checker's files" in text.render(report)


def test_whatever_a_program_writes_into_its_records_is_told_and_costs_no_report(program):
    program.core.stacks[0] = ((str(program.path), 4, "Ledger.add"),)
    conflicts(program, ["add"])
    program.handler.finish()
    (file,) = program.spool.glob("*.jsonl")
    whole = [json.loads(line) for line in file.read_text().splitlines()]
    assert {record["t"] for record in whole} == {"process", "file", "conflict", "finish"}
    assert not program.report().lost
    wrong = []
    for number, record in enumerate(whole):
        for path in {kind_of(path): path for path in places(record)}.values():
            for value in (None, 10**400, 1.5, "x", [[]], {"a": 1}):
                changed = json.loads(json.dumps(whole))
                at(changed[number], path[:-1])[path[-1]] = value
                file.write_text("\n".join(map(json.dumps, changed)) + "\n")
                report = program.report()
                try:
                    json_.render(report), text.render(report), sarif.render(report)
                except (TypeError, ValueError, LookupError, AttributeError) as error:
                    wrong.append(f"{path} {str(value)[:9]}: {error!r}")
                if not report.races and not report.notes and not report.lost and path[-1] != "severity":
                    wrong.append(f"{path} {str(value)[:9]}: a race is gone without a word")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("line", [
    b"[]", b"{}", b"5", b"\xff{", b'{"t": 5}', b'{"t": "race"}', b'{"t": ["race"]}', b"[" * 100_000, b"",
    b'{"t": "gone"}', b'{"t": "process", "core": "c", "root": ' + b"9" * 5000 + b"}"])
def test_a_line_that_is_no_record_costs_no_other(program, line):
    conflicts(program, ["add"])
    (file,) = program.spool.glob("*.jsonl")
    file.write_bytes(line + b"\n" + file.read_bytes() + line + b"\n")
    report = program.report()
    assert len(report.races) == 1
    assert report.lost == (f"process {os.getpid()}",)


def test_who_fills_the_records_with_lines_does_not_keep_us_busy(program):
    conflicts(program, ["add"])
    (file,) = program.spool.glob("*.jsonl")
    before = file.read_bytes()
    file.write_bytes(before + b"\n" * 10**6)
    assert len(list(spool.Reader(str(program.spool)).read())) < 10**4
    with file.open("r+b") as opened:
        opened.truncate(2**26)   # nothing but zeroes follow: one line, longer than what fits in memory may be
    assert len(program.report().races) == 1


def test_comments_that_suppress_nothing_or_give_no_reason(program):
    program.site("idle", "stop =", "stop", "global_write", "stop", note="never")
    program.site("bare", "return", "self.counts[word]", "item_read", "", note="")
    program.tell(("add", AccessKind.WRITE), ("bare", AccessKind.READ), {}, "item", "the")
    program.handler.finish()
    report = program.report()
    mine = [text for text in report.unused_suppressions if "ledger.py" in text]
    assert mine == ["ledger.py:18: `# race: ok` suppresses nothing in this run"]
    assert "ledger.py:16: `# race: ok` gives no reason; write why it is" in report.unexplained_suppressions
    assert [race.reason for race in report.suppressed] == ["no reason given"]


def test_confirmations_are_added_by_ident(program):
    conflicts(program, ["add"])
    [race] = program.report().races
    outcome = ConfirmationOutcome(confirmed=True, sentence="2 updates lost")
    report = program.report().with_confirmations({race.ident: outcome, "x": outcome})
    assert (report.races[0].confirmation, report.races[0].confirmed) == ("2 updates lost", True)


def test_an_empty_spool_is_a_clean_run(tmp_path):
    report = load(str(tmp_path))
    assert (report.races, report.notes, report.processes) == ((), (), 0)


def lock(uid, name):
    return HeldLock(uid=uid, name=name, taken=None)


NO_LOCK = sentences.LockAdvice("No lock is held at the place.", None)


def named(**changes):
    """Return an access with the paths that sentences name."""
    return sentences.for_readers(make_access(**changes), ROOT)


def held_at(**held):
    """Return accesses of one location, each at line 1 of a file of its own, with the locks they held."""
    return [named(place=frame(f"{file}.py:1", "f"), locks=tuple(locks)) for file, locks in held.items()]


HERE = OwnedVariable("process 1", 7, "counts")


def locksets(*accesses):
    return Locksets((HERE, access) for access in accesses)


@pytest.mark.parametrize(("first", "second", "said", "to_hold"), [
    ([], [], "No lock is held at any of the 2 places.", None),
    ([lock(1, "A.lock")], [], "1 of 2 places holds A.lock; b.py:1 does not.", "A.lock"),
    ([lock(1, "A.lock")], [lock(1, "A.lock")], "Both hold A.lock, but release it between the steps.", "A.lock"),
    ([lock(1, "A.lock")], [lock(2, "A.lock")],
     "Both hold a lock named A.lock, but not the same one, so neither excludes the other.", None),
    ([lock(1, "A.lock")], [lock(2, "B.lock")], "1 of 2 places holds A.lock; b.py:1 does not.", "A.lock"),
])
def test_the_sentence_on_locks(first, second, said, to_hold):
    sides = held_at(a=first, b=second)
    assert sentences.missing_lock(locksets(*sides), *sides, "process 1")[:2] == (said, to_hold)


def test_one_place_without_a_lock():
    side = make_access()
    assert sentences.missing_lock(locksets(side), side, side, "process 1").sentence == "No lock is held at the place."


def test_two_locks_of_one_name_are_two_where_they_were_held_for_one_location():
    a, b, c = held_at(a=[lock(1, "lock")], b=[lock(2, "lock")], c=[])
    found = sentences.missing_lock(locksets(a, b, c), b, c, "process 1")
    assert found.sentence == "1 of 3 places holds the same lock named lock; a.py:1 and c.py:1 do not."
    assert found.lacking == (c,)


def test_place_that_holds_a_lock_only_at_times_is_told_from_one_that_never_does():
    a, b = held_at(a=[lock(1, "A.lock")], b=[])
    again = replace(a, locks=())
    found = sentences.missing_lock(locksets(a, again, b), a, b, "process 1")
    assert found.sentence == "0 of 2 places hold A.lock every time; a.py:1 does at times; b.py:1 does not."
    assert found.lacking == (a, b)


@pytest.mark.parametrize("other", [OwnedVariable("process 1", 8, "counts"), OwnedVariable("process 2", 7, "counts")])
def test_the_locks_of_two_instances_and_of_two_processes_are_one(other):
    a, b, c = held_at(a=[lock(1, "A.lock")], b=[lock(2, "A.lock")], c=[])
    found = Locksets([(HERE, a), (other, b), (other, c)])
    assert sentences.missing_lock(found, b, c, "process 1").sentence == "2 of 3 places hold A.lock; c.py:1 does not."


@pytest.mark.parametrize(("kind", "part", "remedy", "expected"), [
    ("lost update", "attr", None, "Hold one lock over bank.py:12-14."),
    ("check-then-act", "item", "dict.setdefault",
     "Use `dict.setdefault` in place of check and store, or hold one lock over bank.py:12-14."),
    ("check-then-act", "structure", "ValueError",
     "Act without the check and catch ValueError, or hold one lock over bank.py:12-14."),
    ("check-then-act", "attr", None, "Hold one lock over bank.py:12-14."),
    ("iteration during change", "structure", None,
     "Loop over a copy made under one lock (`list(...)`), and hold one lock for the change, too: bank.py:12-14."),
    ("torn multi-step write", "attr", None, "Hold one lock over bank.py:12-14."),
    ("unsynchronised read/write", "iterator", None,
     "Give each thread its own iterator, hand items out through queue.Queue, or hold one lock around `next`."),
    ("unsynchronised read/write", "attr", None,
     "Hold one lock over bank.py:12-14, or pass the value on through queue.Queue, Event or join."),
    ("unsynchronised read/write", "attr", "order of statements",
     "Move bank.py:14 above the line that tells the other thread that it is there; no lock mends their order."),
])
def test_the_repair_is_that_of_the_kind(kind, part, remedy, expected):
    side = named(lines=(12, 14), operator="")
    assert sentences.repair(RaceKind(kind), part, side, side, NO_LOCK, remedy and Remedy(remedy)) == expected


def test_lines_that_hold_the_lock_already_are_left_out_of_the_repair_only_if_they_are_one():
    whole, split = named(lines=(9, 9)), named(lines=(12, 14))
    for held, expected in ((whole, "Hold Bank.lock over bank.py:12-14, too."),
                           (split, "Hold Bank.lock over bank.py:9 and 12-14.")):
        other = split if held is whole else whole
        advice = sentences.LockAdvice("", "Bank.lock", (other,))
        assert sentences.repair(RaceKind.LOST_UPDATE, "attr", held, other, advice, None) == expected


def test_lock_over_lines_that_call_code_under_it_has_to_be_reentrant():
    inner = named(lines=(14, 14), locks=(LOCK,), stack=(frame("bank.py:21", "serve"),))
    again = " (an RLock: these lines call each other)"
    for lines, expected in (((20, 22), f"Hold Bank.lock over bank.py:20-22, too{again}."),
                            ((30, 32), "Hold Bank.lock over bank.py:30-32, too.")):
        outer = named(lines=lines)
        advice = sentences.LockAdvice("", "Bank.lock", (outer,))
        assert sentences.repair(RaceKind.LOST_UPDATE, "attr", inner, outer, advice, None) == expected


def split(verb, *, test, act, path="bank.py", **changes):
    """Return an access of a test and its act: the act with its test as partner, or the read with its act."""
    here, there = (test, act) if verb == "read" else (act, test)
    return make_access(verb=verb, place=frame(f"{path}:{here}", "f"), operator="", lines=(test, act + 4),
                       partner=Spot(path=f"{ROOT}/{path}", line=there, column=0, op="attr_read"), **changes)


def access(verb, line, path="bank.py", **changes):
    return make_access(verb=verb, place=frame(f"{path}:{line}", "f"), lines=(line, line), **{"operator": "", **changes})


LOST = "what another thread stores in between is lost."


@pytest.mark.parametrize(("kind", "key", "first", "second", "expected"), [
    ("check-then-act", "", access("write", 3), split("read", test=8, act=10),
     "Another thread can set it between line 8 and line 10."),
    ("check-then-act", "['a']", access("write", 3), split("write", test=8, act=10),
     "Another thread can store ['a'] between line 8 and line 10."),
    ("check-then-act", "", access("pop", 3), split("read", test=8, act=8),
     "Another thread can call `pop` between the test and the act of line 8."),
    ("check-then-act", "", access("delete", 3, "pool.py"), split("read", test=8, act=10),
     "Another thread can delete it between bank.py:8 and bank.py:10."),
    # The write has a test of its own, which the read does not disturb.
    ("check-then-act", "", split("read", test=8, act=10), split("write", test=3, act=5),
     "Another thread can set it between line 8 and line 10."),
    ("check-then-act", "", access("read", 3), split("write", test=8, act=10),
     "The write in line 10 can come before or after the read in line 3: nothing orders them."),
    ("lost update", "", access("write", 3), access("read", 5, operator="-="),
     f"`-=` in line 5 reads, computes, writes: {LOST}"),
    ("lost update", "", access("write", 3), split("write", test=14, act=16),
     f"The value read in line 14 is written back in line 16: {LOST}"),
    ("lost update", "", access("write", 3), split("write", test=14, act=14),
     f"The write in line 14 depends on an earlier read: {LOST}"),
    ("lost update", "", access("append", 3), split("clear", test=14, act=16),
     "What another thread adds between line 14 and line 16 is lost."),
    ("torn multi-step write", "", access("read", 3), access("write", 5),
     "The write takes several steps: another thread can see or leave a mixture."),
    ("torn multi-step write", "", access("read", 3), make_access(place=frame("bank.py:5", "f"), lines=(4, 6)),
     "The write takes several steps, from line 4 to line 6: another thread can see or leave a mixture."),
    ("iteration during change", "", access("append", 3), access("iterate", 5),
     ("Another thread can call `append` during the iteration in line 5, which may then skip or repeat items; that of a "
      "dict, set or deque raises RuntimeError.")),
    ("unsynchronised read/write", "", access("write", 3), access("write", 3),
     "Two threads can come to the write in line 3 in either order."),
])
def test_the_sentence_on_what_goes_wrong_names_act_and_lines(kind, key, first, second, expected):
    part = "item" if key else "attr"
    sides = (sentences.for_readers(side, ROOT) for side in (first, second))
    assert sentences.pattern(RaceKind(kind), part, key, *sides) == expected


def test_a_lock_of_the_standard_library_is_not_for_the_program_to_hold():
    taken = frame("/usr/lib/python3.14/multiprocessing/pool.py:671", "Pool._help_stuff_finish")
    inner = HeldLock(uid=1, name="inqueue._rlock", taken=taken)
    own = HeldLock(uid=2, name="Jobs.lock", taken=frame("/venv/lib/python3.14/site-packages/jobs.py:3", "f"))
    for held, expected in ((inner, None), (own, "Jobs.lock")):
        sides = held_at(a=[held], b=[])
        assert sentences.missing_lock(locksets(*sides), *sides, "process 1").name == expected
    a, b = (make_race(kind=RaceKind.LOST_UPDATE, first=access("write", line, locks=(inner,)),
                      second=access("write", line), repair=f"{line}") for line in (3, 5))
    assert sentences.repair_of_all([a, b], ROOT) == "Hold one lock over bank.py:3 and 5."


def test_a_name_of_two_locks_repairs_no_other_race_of_the_variable():
    two = make_race(kind=RaceKind.LOST_UPDATE, repair="2", first=access("write", 3, locks=(lock(1, "locks[key]"),)),
                    second=access("write", 3, locks=(lock(2, "locks[key]"),)))
    one = make_race(kind=RaceKind.LOST_UPDATE, repair="1", first=access("write", 3, locks=(lock(1, "locks[key]"),)),
                    second=access("write", 5))
    assert sentences.repair_of_all([two, one], ROOT) == "Hold one lock over bank.py:3 and 5."


def test_repairs_of_one_variable_are_merged_but_that_of_an_iteration():
    loop, other = (make_race(kind=RaceKind.ITERATION, first=access(*act), second=access("iterate", 9), repair=text)
                   for *act, text in (("append", 5, "Loop over a copy."), ("remove", 7, "Another")))
    torn, lost = (make_race(kind=kind, first=access("write", line), second=access("write", line), repair=f"{line}")
                  for line, kind in ((3, RaceKind.TORN_WRITE), (5, RaceKind.LOST_UPDATE)))
    assert sentences.repair_of_all([loop, torn, lost], ROOT) == "Loop over a copy. Hold one lock over bank.py:3 and 5."
    assert sentences.repair_of_all([loop, torn], ROOT) == "Loop over a copy. 3"
    assert sentences.repair_of_all([loop, other], ROOT) == (
        "Loop over a copy made under one lock (`list(...)`), and hold one lock for the change, too: "
        "bank.py:5, 7 and 9.")


def in_package(verb, line, *, caller, locks=()):
    """Return an access of a cache in an installed package, that a line of the project led to."""
    site = "/venv/lib/python3.14/site-packages/cachetools"
    stack = (frame(f"{site}/__init__.py:358", "LRUCache.__setitem__"), frame(f"src/bank.py:{caller}", "rate"),
             frame("bank.py:40", "main"))
    return make_access(verb=verb, place=frame(f"{site}/__init__.py:{line}", "Cache.__setitem__"), stack=stack,
                       lines=(line, line + 2), operator="", locks=locks)


def test_repair_of_a_race_in_a_package_names_the_lines_that_call_it():
    inner = HeldLock(uid=8, name="Cache.lock", taken=frame("/venv/lib/python3.14/site-packages/cachetools/x.py:2", "f"))
    whole, half = (sentences.own_call(in_package("write", 67, caller=7, locks=locks), ROOT)
                   for locks in ((LOCK, inner), ()))
    assert (whole.place.path, whole.lines, whole.locks) == (f"{ROOT}/src/bank.py", (7, 7), (LOCK,))
    sides = [sentences.for_readers(side, ROOT) for side in (whole, half)]
    for name, expected in (("Bank.lock", "Bank.lock"), ("Cache.lock", "one lock"), (None, "one lock")):
        advice = sentences.LockAdvice("", name)
        assert sentences.repair_of_calls(sides, advice) == f"Hold {expected} over src/bank.py:7."
    own = make_access()
    assert sentences.own_call(own, ROOT) is own
    foreign = replace(in_package("write", 67, caller=7), stack=())     # a thread of the package's own
    assert sentences.own_call(foreign, ROOT) is foreign
    races = [make_race(kind=RaceKind.ITERATION, first=in_package("insert", 67, caller=caller), repair=f"{caller}",
                       second=in_package("iterate", 90, caller=9)) for caller in (7, 8)]
    assert sentences.repair_of_all(races, ROOT) == "Hold one lock over src/bank.py:7, 8 and 9."


def test_the_gravest_kind_stands_first_whatever_its_lines():
    plain, check, lost = (
        make_race(kind=kind, severity=Severity.RACE, first=access("write", line), second=access("write", line))
        for line, kind in ((3, RaceKind.UNSYNCHRONISED), (5, RaceKind.CHECK_THEN_ACT), (7, RaceKind.LOST_UPDATE)))
    assert sorted([plain, check, lost], key=gather._place_order) == [lost, check, plain]
