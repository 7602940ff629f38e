"""What one more worker takes: measured on real builds, and the words for it."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gilscope.toolkit.children.asking import ChildAnswer, ProcessEnding
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.judge import refusal_in
from gilscope.toolkit.evaluate.project import worker_costs as measuring
from gilscope.toolkit.evaluate.project.worker_costs import measure_workers, modules_inside
from gilscope.toolkit.evaluate.sections import InterpretersCrashed, Missing, Spread, WorkerPrice
from gilscope.toolkit.evaluate.views.table import table
from tests.evaluate.made_up import (
    PROJECT,
    conclude_interpreters,
    concluded,
    finding,
    imports,
    inside,
    report,
    spread,
    workers,
)
from tests.patience import PATIENCE

# In an interpreter, where no signal handler can be set, it takes the process along.
DEADLY = """
import os, signal
try:
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
except ValueError:
    os.kill(os.getpid(), signal.SIGSEGV)
"""
FALLS_BACK = "try:\n    import falls.multi_free\nexcept ImportError:\n    pass\n"
ABOVE = "try:\n    import old.single_plain\nexcept ImportError:\n    raise ImportError('read the manual')\n"
PLACES = {
    # Its own 8 MiB are more than what interpreters of one build differ by.
    "good": {"good/__init__.py": "import good.multi_best\nHOARD = b'x' * 2**23\n", "good/multi_best.so": None},
    "falls": {"falls/__init__.py": FALLS_BACK, "falls/multi_free.so": None},
    "refuses": {"refuses.py": "import old.single_plain\n", "old/__init__.py": "", "old/single_plain.so": None},
    "above": {"above.py": ABOVE},
    "deadly": {"deadly.py": DEADLY},
}


@pytest.fixture(autouse=True)
def _fewest_rounds(monkeypatch):
    monkeypatch.setattr(measuring, "SECONDS", 0.0)


@pytest.fixture
def place(site):
    def make(build):
        made = site(build)
        for name, files in PLACES.items():
            made.add(name, files)
        return made.scratch().python

    return make


@pytest.mark.builds("gil", "free")
def test_every_kind_of_worker_is_measured_with_what_loads_in_interpreters(place, build):
    found = measure_workers(place(build), ["good", "falls", "refuses", "above", "absent"], limit=PATIENCE)
    assert found.modules == ("good", "falls")
    assert [name for name, _ in found.refused] == ["refuses", "above"]
    assert all("module old.single_plain does not support loading in subinterpreters" in why for _, why in found.refused)
    assert [name for name, _ in found.missing] == ["absent"]
    assert (found.thread.start.count, found.process.start.count) == (4, 2)
    assert (found.interpreter.start.count, found.create.count, found.destroy.count) == (5, 5, 5)   # 2 at once, 3 rounds
    assert found.interpreter.memory is None or found.interpreter.memory > found.bare.memory > 0


@pytest.mark.builds("gil")
def test_crash_is_blamed_on_what_was_imported_when_the_standard_library_alone_does_not(place, build, monkeypatch):
    python = place(build)
    found = measure_workers(python, ["deadly"], limit=PATIENCE)
    assert found == InterpretersCrashed(reason="crashed with SIGSEGV")
    monkeypatch.setattr(measuring, "control_modules", lambda _: ("deadly",))   # as if that did it, too
    found = measure_workers(python, ["deadly"], limit=PATIENCE)
    assert found == Missing(reason="crashed with SIGSEGV; with the standard library alone, too")


def told(*records, kind="done", reason=""):
    return ChildAnswer(records=records, ending=ProcessEnding(kind=kind, reason=reason, output=""))


def worker(event, start, memory, **others):
    return {"event": event, "start": start, "memory": memory, "ran": 6, "waited": 2} | others


def inside_of(start, memory, create):
    return worker("interpreter", start, memory, create=create, imports=0.5, destroy=0.25)


IMPORTED = {"event": "imported", "missing": {"absent": "no"}, "stdlib": ["json"]}
TRIED = {"event": "tried", "refused": {"refuses": "why"}}
END = {"event": "end"}


@pytest.fixture
def answers(monkeypatch):
    """Give a function that has the children answer these, one after the other; returns the modules that were asked."""
    def answer(*all_told):
        asked, ready = [], iter(all_told)
        monkeypatch.setattr(measuring, "ask", lambda _python, _module, _name, job, **_: (
            asked.append(job["modules"]), next(ready))[1])
        return asked

    return answer


@pytest.mark.parametrize(("levels", "kept"), [
    ((100, 160, 220), 60.0), ((160, 100), 0.0), ((100,), None), ((), None), ((100, None), None)])
def test_numbers_of_workers_are_those_that_the_children_tell(answers, tmp_path, levels, kept):
    bare = told(IMPORTED, TRIED, inside_of(0.125, 10, 0.125), worker("thread", 9.0, 9), worker("process", 9.0, 9), END)
    full = told(
        IMPORTED, TRIED, worker("thread", 1.0, None, ran=0, waited=0), worker("process", 2.0, 30),
        inside_of(3.0, 50, 1.0), inside_of(5.0, 70, 2.0), inside_of(4.0, None, 6.0),
        *({"event": "destroyed", "memory": level} for level in levels), END)
    asked = answers(bare, full)
    found = measure_workers(tmp_path, ["good", "absent", "refuses"])
    assert asked == [[], ["good", "absent", "refuses"]]
    assert (found.modules, found.missing, found.refused) == (("good",), (("absent", "no"),), (("refuses", "why"),))
    assert (found.interpreter.start, found.interpreter.memory) == (Spread(median=4.0, lo=3.0, hi=5.0, count=3), 60)
    assert (found.bare.start.median, found.bare.memory) == (0.125, 10)
    assert (found.thread.start.median, found.thread.memory, found.process.start.median, found.process.memory) == (
        1.0, None, 2.0, 30)
    assert (found.create.median, found.imports.median, found.destroy.median) == (2.0, 0.5, 0.25)
    assert (found.run_queue, found.kept) == (0.25, kept)


@pytest.mark.parametrize(("answer", "reason"), [
    ((told({"event": "unavailable"}),), "this Python cannot make interpreters"),
    ((told({"event": "failed", "error": "ValueError: no"}),), "ValueError: no"), ((told(),), "it ended early"),
    ((told(kind="hang", reason="hung"),), "it took more than the 60 s that there were for it"),
    ((told(kind="crash", reason="crashed"),), "crashed"),   # before anything was imported
    ((told(IMPORTED, kind="crash", reason="crashed"), told(kind="crash")),
     "crashed; with the standard library alone, too"),
])
def test_why_nothing_was_measured(answers, tmp_path, answer, reason):
    answers(*answer)
    assert measure_workers(tmp_path, ["good"]) == Missing(reason=reason)


def test_crash_that_the_standard_library_alone_survives_is_the_projects(answers, tmp_path):
    whole, crash = told(IMPORTED, TRIED, END), told(IMPORTED, kind="crash", reason="crashed")
    asked = answers(whole, crash, whole)
    assert measure_workers(tmp_path, ["good"]) == InterpretersCrashed(reason="crashed")
    assert "json" in asked[2]


@pytest.mark.parametrize(("took", "left", "seconds"), [(10.0, 50.0, 4.5), (48.0, 12.0, 3.0), (70.0, 1.0, 0.25)])
def test_second_process_has_the_time_that_is_left(tmp_path, monkeypatch, took, left, seconds):
    asked = []
    monkeypatch.setattr(measuring, "ask", lambda _python, _module, _name, job, *, limit, **_: (
        asked.append((limit, job["seconds"])), told(IMPORTED, TRIED, END) if len(asked) < 2 else told())[1])
    monkeypatch.setattr(measuring, "SECONDS", 4.5)
    monkeypatch.setattr(measuring, "time", SimpleNamespace(monotonic=iter((100.0, 100.0 + took)).__next__))
    assert measure_workers(tmp_path, ["good"], limit=60.0).reason == "it ended early"
    assert asked == [(60.0, 4.5), (left, seconds)]


def test_nothing_is_written_into_the_users_folder(tmp_path):
    (tmp_path / "thing.py").write_text("x = 1\n")
    measure_workers(Path(sys.executable), ["thing"], path=[str(tmp_path)], limit=PATIENCE)
    assert [path.name for path in tmp_path.rglob("*")] == ["thing.py"]


def test_python_that_cannot_be_started_is_a_reason(tmp_path):
    found = measure_workers(tmp_path / "python", ["json"])
    assert isinstance(found, Missing)
    assert "cannot start" in found.reason


def test_what_loads_in_interpreters_of_the_projects_requirements_and_its_own_modules_are_imported():
    loads = finding(Status.READY, InterpreterStatus.LOST)
    refused = finding(Status.READY, InterpreterStatus.FAILS)
    run = imports()
    for each in (loads, refused):
        object.__setattr__(each.seen, "run", run)
        object.__setattr__(each.seen, "interpreters", (run,))
    assert modules_inside(PROJECT, report(loads), None) == ("lxml", "myapp")
    other = replace(loads, name="other", seen=replace(loads.seen, distribution=replace(
        loads.seen.distribution, modules=("other", "nowhere"))))
    both = replace(run, imported=("other", "lxml"))
    other = replace(other, seen=replace(other.seen, run=both, interpreters=(both,)))
    assert modules_inside(PROJECT, report(loads, other), None) == ("lxml", "myapp")   # the other is needed by it only
    assert modules_inside(PROJECT, report(other), None) == ("other", "myapp")         # names that no requirement tells
    for lacking in ({"distribution": None}, {"run": None}, {"interpreters": ()},
                    {"run": replace(run, imported=())}, {"interpreters": (replace(run, imported=()),)}):
        assert modules_inside(PROJECT, report(replace(loads, seen=replace(loads.seen, **lacking))), None) == ("myapp",)
    assert modules_inside(PROJECT, report(refused), None) == ("myapp",)
    assert modules_inside(PROJECT, Missing(reason=""), None) == ("myapp",)


def test_what_the_workload_imports_is_imported_too(tmp_path):
    project = replace(PROJECT, root=tmp_path)
    (tmp_path / "load.py").write_text("import json.decoder, app\nfrom shop.cart import add\nfrom . import near\n")
    (tmp_path / "load.sh").write_text("exec true &\n")
    for workload, modules in (
            ("app.service:work", ("app.service",)), ("app:work app.given:payloads", ("app", "app.given")),
            ("load.py --fast", ("json.decoder", "app", "shop.cart")), ("load.sh", ()), ("gone.py", ())):
        assert modules_inside(project, Missing(reason=""), workload) == ("myapp", *modules)


def lines(found):
    """Return what the screen says of one more worker."""
    return [f"{fact.target}: {fact.text}" for fact in concluded(interpreters=tuple(found)).facts
            if fact.code == "workers.price"]


def takes(found):
    """Return what the verdict on interpreters says of their price."""
    return [fact.text for fact in concluded(interpreters=(inside(workers=found),)).facts
            if fact.code == "interpreters.price"]


def growth(worker):
    """Return the memory of an interpreter in the table."""
    shown = table(concluded(interpreters=(inside(workers=workers(interpreter=worker)),)))
    return shown.rows[0][[column.title for column in shown.columns].index("memory")].value or ""


def test_times_are_told_on_a_quiet_machine_only_and_memory_always():
    quiet, busy = workers(), workers(run_queue=0.4)
    (told,) = lines([inside(workers=quiet)])
    assert "interpreter 9.0 MiB and 180 ms [170 ms, 200 ms] (2.3 MiB and 9.00 ms without the imports), new" in told
    (untold,) = lines([inside(workers=busy)])
    assert "interpreter 9.0 MiB (2.3 MiB without the imports), new process 11.0 MiB, thread 20.0 KiB; " in untold
    assert " ms" not in untold
    assert "times were not judged: the processes waited 40 % of their time for a core" in untold
    assert list(takes(busy)) == ["each takes 9.0 MiB (a process 11.0 MiB)"]
    assert "leaves 2.5 MiB behind: make them once" in list(takes(workers(kept=2.5 * 2**20)))[1]
    assert len(list(takes(workers(kept=2**20)))) == 2
    assert len(list(takes(workers(kept=2**20 - 1)))) == 1


def test_what_is_not_known_of_a_worker_is_left_out():
    empty = WorkerPrice(start=spread(0.01), memory=None)
    unknown = workers(run_queue=None, kept=None, modules=(), interpreter=empty, process=empty, thread=empty, bare=empty)
    crashed = InterpretersCrashed(reason="crashed with SIGSEGV")
    assert list(lines([inside(workers=unknown), inside(workers=crashed)])) == [
        "3.14: importing nothing: times were not judged: the system does not tell who waited for a core",
        "3.14: not known: crashed with SIGSEGV"]
    assert list(takes(unknown)) == []
    assert list(takes(workers(kept=None, process=empty))) == [
        "each takes 9.0 MiB and 180 ms to start (a process 10.0 ms)"]
    assert (growth(empty), growth(WorkerPrice(start=spread(0.01), memory=2**20))) == ("", "+1.0 MiB")
    (told,) = lines([inside(workers=workers(modules=("a", "b", "c")))])
    assert told.startswith("3.14: importing a, b, c: interpreter")
    assert told.endswith("destroying an interpreter takes 30.0 ms and leaves 0 B")


def test_the_projects_own_module_that_interpreters_refuse_blocks_them():
    refused = workers(refused=(("myapp", "ImportError: module myapp.fast does not support it"),))
    said = conclude_interpreters(inside(workers=refused), Missing(reason=""))
    assert (said.word, said.reasons) == (
        "BLOCKED", ("myapp cannot be imported in them: ImportError: module myapp.fast does not support it",))
    crashed = InterpretersCrashed(reason="crashed with SIGSEGV")
    broken = conclude_interpreters(inside(workers=crashed), Missing(reason=""))
    assert (broken.word, broken.reasons) == (
        "BLOCKED", ("a process whose interpreters import all of it: crashed with SIGSEGV",))
    assert conclude_interpreters(inside(workers=workers()), Missing(reason="")).reasons[-1] == (
        "each takes 9.0 MiB and 180 ms to start (a process 11.0 MiB and 230 ms)")


def test_what_refused_is_named_whatever_stands_above_it():
    output = """ImportError: PLEASE READ THIS FOR ADVICE
Original error was: module numpy._core._umath does not support loading in subinterpreters
ImportError: Unable to import required dependency numpy."""
    assert refusal_in(output) == "numpy._core._umath does not support loading in subinterpreters"
    assert refusal_in("ImportError: no module named numpy") == ""
