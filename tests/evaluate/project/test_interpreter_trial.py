"""A project in subinterpreters: what they refuse and what one takes on real builds, and the words for it."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gilscope.toolkit.children.asking import ChildAnswer, ProcessEnding
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.judge import refusal_in
from gilscope.toolkit.evaluate.project import interpreter_trial as measuring
from gilscope.toolkit.evaluate.project.interpreter_trial import modules_inside, try_interpreters
from gilscope.toolkit.evaluate.sections import Cause, Missing
from gilscope.toolkit.evaluate.views.screen import table
from tests.evaluate.made_up import (
    PROJECT,
    conclude_interpreters,
    concluded,
    finding,
    imports,
    inside,
    report,
    trial,
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
HOARD = 2**22   # bytes, more than what interpreters of one build differ by
PLACES = {
    "good": {"good/__init__.py": f"import good.multi_best\nHOARD = b'x' * {2 * HOARD}\n", "good/multi_best.so": None},
    "falls": {"falls/__init__.py": FALLS_BACK, "falls/multi_free.so": None},
    "refuses": {"refuses.py": "import old.single_plain\n", "old/__init__.py": "", "old/single_plain.so": None},
    "above": {"above.py": ABOVE},
    "deadly": {"deadly.py": DEADLY},
}


@pytest.fixture
def place(site):
    def make(build):
        made = site(build)
        for name, files in PLACES.items():
            made.add(name, files)
        return made.scratch().python

    return make


@pytest.mark.builds("gil", "free")
def test_what_loads_in_interpreters_is_imported_and_its_memory_measured(place, build):
    python = place(build)
    found = try_interpreters(python, ["good", "falls", "refuses", "above", "absent"], limit=PATIENCE)
    assert found.modules == ("good", "falls")
    assert [name for name, _ in found.refused] == ["refuses", "above"]
    assert all("module old.single_plain does not support loading in subinterpreters" in why for _, why in found.refused)
    empty = try_interpreters(python, [], limit=PATIENCE)
    assert empty.modules == ()
    if found.memory is not None:   # Linux alone reports it
        assert found.memory > empty.memory + HOARD
        assert found.process_memory > empty.process_memory + HOARD


@pytest.mark.builds("gil")
def test_crash_is_blamed_on_what_was_imported_when_the_standard_library_alone_does_not(place, build, monkeypatch):
    python = place(build)
    found = try_interpreters(python, ["deadly"], limit=PATIENCE)
    assert found == Missing(reason="crashed with SIGSEGV", cause=Cause.CRASHED)
    monkeypatch.setattr(measuring, "control_modules", lambda _: ("deadly",))   # as if that did it, too
    found = try_interpreters(python, ["deadly"], limit=PATIENCE)
    assert found == Missing(reason="crashed with SIGSEGV; with the standard library alone, too")


def told(*records, kind="done", reason=""):
    return ChildAnswer(records=records, ending=ProcessEnding(kind=kind, reason=reason, output=""))


IMPORTED = {"event": "imported", "modules": ["good", "refuses"], "stdlib": ["json"]}
MEASURED = {"event": "measured", "refused": {"refuses": "why"}, "interpreter": 50, "process": None}
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


def test_trial_is_what_the_child_tells(answers, tmp_path):
    asked = answers(told(IMPORTED, MEASURED, END))
    found = try_interpreters(tmp_path, ["good", "absent", "refuses"])
    assert asked == [["good", "absent", "refuses"]]
    assert (found.modules, found.refused) == (("good",), (("refuses", "why"),))
    assert (found.memory, found.process_memory) == (50, None)


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
    assert try_interpreters(tmp_path, ["good"]) == Missing(reason=reason)


def test_crash_that_the_standard_library_alone_survives_is_the_projects(answers, tmp_path):
    asked = answers(told(IMPORTED, kind="crash", reason="crashed"), told(IMPORTED, MEASURED, END))
    assert try_interpreters(tmp_path, ["good"]) == Missing(reason="crashed", cause=Cause.CRASHED)
    assert "json" in asked[1]


def test_nothing_is_written_into_the_users_folder(tmp_path):
    (tmp_path / "thing.py").write_text("x = 1\n")
    try_interpreters(Path(sys.executable), ["thing"], path=[str(tmp_path)], limit=PATIENCE)
    assert [path.name for path in tmp_path.rglob("*")] == ["thing.py"]


def test_python_that_cannot_be_started_is_a_reason(tmp_path):
    found = try_interpreters(tmp_path / "python", ["json"])
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


def told_of(found):
    """Return the texts on the memory of one more interpreter, by code."""
    return [(fact.code, fact.text) for fact in concluded(interpreters=(inside(trial=found),)).facts
            if fact.code.startswith("interpreters.memory")]


def growth(memory):
    """Return the memory of an interpreter in the table."""
    shown = table(concluded(interpreters=(inside(trial=trial(memory=memory)),)))
    return shown.rows[0][[column.title for column in shown.columns].index("memory")].value or ""


@pytest.mark.parametrize(("found", "said"), [
    (trial(modules=("a", "b")), [("interpreters.memory", "each takes 9.0 MiB with a, b (a process 11.0 MiB)")]),
    (trial(modules=(), process_memory=None), [("interpreters.memory", "each takes 9.0 MiB")]),
    (trial(memory=None), []),
    (Missing(reason="it hung"), [("interpreters.memory-not-known", "not known: it hung")]),
    (Missing(reason="crashed", cause=Cause.CRASHED), [("interpreters.memory-not-known", "not known: crashed")]),
])
def test_memory_of_an_interpreter_is_told_where_it_is_known(found, said):
    assert told_of(found) == said


def test_memory_of_an_interpreter_is_in_the_table():
    assert (growth(None), growth(2**20)) == ("", "+1.0 MiB")


def test_the_projects_own_module_that_interpreters_refuse_blocks_them():
    refused = trial(refused=(("myapp", "ImportError: module myapp.fast does not support it"),))
    said = conclude_interpreters(inside(trial=refused), Missing(reason=""))
    assert (said.word, said.reasons) == (
        "BLOCKED", ("myapp cannot be imported in them: ImportError: module myapp.fast does not support it",))
    crashed = Missing(reason="crashed with SIGSEGV", cause=Cause.CRASHED)
    broken = conclude_interpreters(inside(trial=crashed), Missing(reason=""))
    assert (broken.word, broken.reasons) == (
        "BLOCKED", ("a process whose interpreters import all of it: crashed with SIGSEGV",))


def test_what_refused_is_named_whatever_stands_above_it():
    output = """ImportError: PLEASE READ THIS FOR ADVICE
Original error was: module numpy._core._umath does not support loading in subinterpreters
ImportError: Unable to import required dependency numpy."""
    assert refusal_in(output) == "numpy._core._umath does not support loading in subinterpreters"
    assert refusal_in("ImportError: no module named numpy") == ""
