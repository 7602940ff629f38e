"""Made-up races, for what comes after the checked program."""

from dataclasses import replace

from gilscope.toolkit.race.report.model import Access, Frame, HeldLock, Race, RaceReport, Spot

ROOT = "/home/ann/bank"
LOCK = HeldLock(uid=3, name="Bank.lock", taken=Frame(path=f"{ROOT}/bank.py", line=20, function="Bank.audit"))


def frame(place, function, source=""):
    """Return the frame of "bank.py:14"."""
    path, line = place.split(":")
    return Frame(path=path if path.startswith(("/", "<")) else f"{ROOT}/{path}", line=int(line), function=function,
                 source=source)


def make_access(*, path=f"{ROOT}/bank.py", **changes):
    place = Frame(path=path, line=14, function="Account.deposit", source="self.balance += amount")
    access = Access(
        thread="thread-1", verb="write", place=place, text="self.balance", locks=(), partner=None,
        lines=(14, 14), operator="+=",
        stack=(frame("teller.py:31", "serve", "account.deposit(10)"),
               frame("/usr/lib/python3.14/threading.py:1010", "Thread.run", "self._target(*self._args)")),
        started=(frame("main.py:5", "<module>", "threading.Thread(target=serve).start()"),),
        pause=Spot(path=path, line=14, column=8, op="attr_update", source=place.source),
    )
    return replace(access, **changes)


def make_race(**changes):
    race = Race(
        ident="0123456789ab", variable="Account.balance of <Account 'bob'>", base="Account.balance",
        name="Account.balance", kind="lost update",
        severity="race", rule=None, remedy=None, first=make_access(thread="thread-2", locks=(LOCK,)),
        second=make_access(), count=12,
        pattern="`+=` in line 14 reads, computes, writes: what another thread stores in between is lost.",
        missing="1 of 2 places holds Bank.lock; teller.py:31 does not.",
        repair="Hold Bank.lock over bank.py:14, too.",
    )
    return replace(race, **changes)


CHECK = make_race(
    ident="ba9876543210", variable="Pool.jobs['a, b: 100%']", base="Pool.jobs", name="Pool.jobs",
    item_key="['a, b: 100%']", kind="check-then-act",
    severity="atomicity violation", confirmation="confirmed: 2 updates lost in a re-run", confirmed=True, count=1,
    second=make_access(
        verb="popleft", text="self.jobs", lines=(8, 9), operator="", started=(), thread="MainThread", stack=(),
        place=frame("pool.py:9", "Pool.take", "return self.jobs.popleft()"),
        pause=Spot(path=f"{ROOT}/pool.py", line=9, column=15, op="method"),
        partner=Spot(path=f"{ROOT}/pool.py", line=8, column=11, op="size", source="if self.jobs:")),
    pattern="Another thread can store ['a, b: 100%'] between pool.py:8 and pool.py:9.",
    missing="No lock is held at any of the 2 places.",
    repair="Hold one lock over pool.py:8-9 and bank.py:14.")
FLAG = make_race(
    ident="f1a9f1a9f1a9", variable="Worker.stopped", base="Worker.stopped", name="Worker.stopped",
    kind="unsynchronised read/write",
    severity="note", rule="flag", count=1, missing="m", repair="r",
    pattern="A flag is stored as a constant and tested.",
    first=make_access(verb="read", stack=(), operator=""))
HIDDEN = make_race(ident="51de51de51de", variable="Stats.hits", base="Stats.hits", name="Stats.hits",
                   reason="an estimate is enough")


def make_report(**changes):
    report = RaceReport(
        target="main.py", build="3.14t", core="C", root=ROOT, races=(make_race(), CHECK), notes=(FLAG,),
        suppressed=(HIDDEN,), unused_suppressions=("bank.py:3: `# race: ok` suppresses nothing in this run",),
        unexplained_suppressions=("bank.py:9: `# race: ok` gives no reason; write why it is",),
        unrewritten=((f"{ROOT}/odd.py", "nested too deeply"),), lost=("process 4711",), processes=2,
    )
    return replace(report, **changes)
