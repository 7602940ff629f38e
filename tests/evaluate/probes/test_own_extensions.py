"""What the project's own extension modules come to: verdicts, next steps, the report; made-up findings throughout."""

from dataclasses import replace

import pytest

from gilscope.toolkit.commands.evaluate import explained
from gilscope.toolkit.errors import UnknownNameError
from gilscope.toolkit.evaluate.decision import Decision
from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.facts import Effect, PlanStep
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, PackageVerdict, Status
from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from gilscope.toolkit.evaluate.project.extensions.own_extensions import (
    UNGUARDED,
    Binding,
    ExtensionModule,
    ExtensionSource,
    OwnBuild,
    OwnExtensions,
    Remark,
    UnbuiltModule,
    how_to_declare,
)
from gilscope.toolkit.evaluate.sections import Development, Missing, Place
from gilscope.toolkit.evaluate.verdict import answer
from gilscope.toolkit.evaluate.views.json_document import plain
from gilscope.toolkit.evaluate.views.screen import document, table
from gilscope.toolkit.report import markdown, terminal
from tests.conformance.builds import ROOT
from tests.evaluate.made_up import (
    CLEAN,
    QUIET,
    MadeInside,
    builds_of,
    changed,
    conclude,
    conclude_interpreters,
    conclude_processes,
    concluded,
    evaluation,
    finding,
    found,
    gain,
    inside,
    lxml,
    next_steps,
    ratio,
    report,
    suite,
)
from tests.fakes import make_build

EXTENSIONS = PlanStep.EXTENSIONS.value

SOURCE = ExtensionSource(
    file="src/etree.c", language="C", binding=Binding.C_API, defines=True, line=90, declared=False,
    declare="{Py_mod_gil, Py_MOD_GIL_NOT_USED} among the module's slots",
    remarks=(Remark(line=7, concern="state", what="static PyObject *cache", instead="guard it"),
             *(Remark(line=line, concern="borrowed reference", what="PyDict_GetItem", instead="PyDict_GetItemRef")
               for line in (20, 21, 40))))
MODULE = ExtensionModule(name="lxml.etree", binding=Binding.C_API, backend="setuptools", file="setup.py", line=3,
                         sources=("src/etree.c",), optional=True)
OWN = OwnExtensions(modules=(MODULE,), sources=(SOURCE,))
TURNS_ON = OwnBuild(build="3.14t", report=report(lxml()))
FAILED = OwnBuild(build="3.14t", failure=Missing(reason="pkg/_c.c:1: error: no such type"),
                  output="cc -c pkg/_c.c\nerror: no such type")
LACKS = OwnBuild(build="3.14t", report=report(finding()),
                 unbuilt=(UnbuiltModule(name="lxml.etree", why="cc: not found"),))


def built(status, *reasons):
    return OwnBuild(build="3.14t",
                    report=report(replace(finding(), verdict=PackageVerdict(status=status, reasons=reasons))))


@pytest.mark.parametrize(("own", "word", "reason"), [
    (TURNS_ON, Verdict.BLOCKED, "its own extension module lxml.etree turns the GIL on when imported: not declared"),
    (built(Status.CRASH, "crashed with SIGSEGV"), Verdict.BLOCKED,
     "its own code, as it is built, crashes: crashed with"),
    (built(Status.UNKNOWN, "x: no hook"), Verdict.INCONCLUSIVE,
     "its own extension modules could not be judged: x: no hook"),
    (built(Status.LOST, "x: not there"), Verdict.WITH_COST, "it loses C code of its own: x: not there"),
    (replace(FAILED, elsewhere="3.14"), Verdict.BLOCKED, "cannot be built here, and can on 3.14: pkg/_c.c:1: error"),
    (FAILED, Verdict.INCONCLUSIVE, "were not built, so their behaviour without the GIL is unknown: pkg/_c.c:1: error"),
    (LACKS, Verdict.INCONCLUSIVE, "module lxml.etree was not built, so its behaviour without the GIL is unknown"),
    (replace(LACKS, unbuilt=(UnbuiltModule(name="a", why="", elsewhere="3.14"),)), Verdict.WITH_COST,
     "a is not built here"),
])
def test_verdict(own, word, reason):
    said = conclude(found(own=own), QUIET, CLEAN)
    assert said.word is word
    assert reason in said.reasons[0]


BUSY = replace(QUIET, doubts=("busy",))
UNBUILT = replace(LACKS,
                  unbuilt=(UnbuiltModule(name="a", why='pkg/_a.c:3:2: error: #error "not yet"', elsewhere="3.14",
                                         place=Place(file="pkg/_a.c", line=3)),))


@pytest.mark.parametrize("own", [UNBUILT, built(Status.LOST, "x: not there")])
@pytest.mark.parametrize(("machine", "times", "word"), [
    (QUIET, 10.0, Verdict.BLOCKED), (BUSY, 10.0, Verdict.BLOCKED), (QUIET, 1.1, Verdict.WITH_COST),
    (BUSY, 1.21, Verdict.WITH_COST)])
def test_lost_c_code_of_its_own_blocks_what_needs_it(own, machine, times, word):
    cost = replace(found().cost, cpu=ratio(1 / times, width=0.01))
    build = found(own=own, cost=cost)
    said = conclude(build, machine, CLEAN)
    assert said.word is word
    slower = f"and one thread takes {times:.2f} times the CPU time of 3.14"
    assert (slower in said.reasons[0]) is (word is Verdict.BLOCKED)


def places(own, extensions):
    """Return the places of the project's own that the facts about its extension modules name."""
    facts = concluded(found(own=own), extensions=extensions).facts
    return list(dict.fromkeys(place for fact in facts if fact.code.startswith("extension") for place in fact.places))


def test_place_at_which_compiling_stops_is_to_be_looked_at():
    safe = replace(OWN, sources=(replace(SOURCE, remarks=()),))
    assert [*map(str, places(UNBUILT, safe))] == ["pkg/_a.c:3"]
    assert places(LACKS, safe) == []


@pytest.mark.parametrize("elsewhere", ["3.14", ""])
def test_tests_that_fail_for_want_of_its_modules_are_no_other_thing(elsewhere):
    build = found(own=replace(FAILED, elsewhere=elsewhere), tests=suite(failed=1, ending="1"))
    (said,) = conclude(build, QUIET, CLEAN).reasons
    assert said.startswith("its own extension modules cannot be built here" if elsewhere else "1 test fails")


LIMITED = replace(OWN, limited=(Place(file="setup.py", line=5), Place(file="setup.py", line=8)))
REFUSED = replace(FAILED, failure=Missing(reason="ValueError: `py_limited_api='cp312'` not supported"),
                  elsewhere="3.14", names_limited_api=True)


@pytest.mark.parametrize(("own", "told"), [
    (REFUSED, True),
    (replace(LACKS, unbuilt=(UnbuiltModule(name="a", why="error: no", elsewhere="3.14"),), names_limited_api=True),
     True),
    (replace(LACKS, unbuilt=(UnbuiltModule(name="a", why="", elsewhere="3.14"),)), True),
    (replace(FAILED, elsewhere="3.14"), False), (replace(REFUSED, elsewhere=""), False), (UNBUILT, False)])
def test_limited_api_is_named_where_it_is_what_is_lacking(own, told):
    assert ({*LIMITED.limited} <= {*places(own, LIMITED)}) is told
    said = [each for each in steps(own, LIMITED) if "leave the limited API out" in each]
    assert [each.startswith("3.14t: setup.py:5, setup.py:8: ") for each in said] == [True] * told


def test_nanobinds_word_is_written_where_its_build_names_the_module():
    source = replace(SOURCE, language="C++", binding=Binding.NANOBIND, remarks=())
    own = OwnExtensions(sources=(source,), modules=(replace(MODULE, binding=Binding.NANOBIND, file="CMakeLists.txt",
                                                            line=22),))
    assert [*map(str, places(TURNS_ON, own))] == ["CMakeLists.txt:22"]
    (step,) = (each for each in next_steps(found(own=TURNS_ON), extensions=own) if "declare" in each)
    assert "CMakeLists.txt:22: declare that lxml.etree does without the GIL" in step
    assert [*map(str, places(TURNS_ON, replace(own, modules=())))] == ["src/etree.c:90"]


def test_files_of_its_own_count_as_ready_ones():
    (extension,) = lxml().seen.extensions
    seen = replace(lxml().seen, run=None, extensions=(replace(extension, gil="not-used"),))
    fine = replace(lxml(), verdict=PackageVerdict(status=Status.READY), interpreters=InterpreterStatus.OK, seen=seen)
    said = conclude(found(own=OwnBuild(build="3.14t", report=report(fine))), QUIET, CLEAN)
    assert (said.word, said.reasons[0]) == (
        Verdict.READY, "1 extension file does without the GIL, as slots and imports say")


DECLARED = replace(SOURCE, declared=True)


@pytest.mark.parametrize("concern", sorted(UNGUARDED))
def test_what_only_the_gil_makes_safe_is_never_ready(concern):
    (extension,) = lxml().seen.extensions
    seen = replace(lxml().seen, run=None, extensions=(replace(extension, gil="not-used"),))
    fine = replace(lxml(), verdict=PackageVerdict(status=Status.READY), interpreters=InterpreterStatus.OK, seen=seen)
    build = replace(found(own=OwnBuild(build="3.14t", report=report(fine))), gain=gain({2: ratio(1.8)}))
    unsafe = replace(OWN, sources=(replace(DECLARED, remarks=(Remark(line=7, concern=concern, what="it"),)),))
    made = changed(evaluation(), builds=(build,), extensions=unsafe, races=CLEAN)
    (fact,) = (each for each in made.facts if each.code == "extensions.unguarded")
    assert (fact.effect, [*map(str, fact.places)]) == (Effect.UNKNOWN, ["src/etree.c:7"])
    assert conclude(build, QUIET, CLEAN, unsafe).word is Verdict.INCONCLUSIVE
    assert [*map(str, made.answer.effort.places)] == ["src/etree.c:7"]
    assert next(each for each in made.plan if each.name == EXTENSIONS).state == "open"
    assert any(step.startswith("src/etree.c:7: make it safe without the GIL") for step in made.next_steps)


@pytest.mark.parametrize("concern", sorted({"allocation", "interface"}))
def test_what_the_gil_never_made_safe_is_in_no_doubt(concern):
    fine = replace(OWN, sources=(replace(DECLARED, remarks=(Remark(line=7, concern=concern, what="it"),)),))
    said = conclude(found(own=built(Status.READY)), QUIET, CLEAN, fine)
    assert (said.word, said.confidence) == (Verdict.READY, "high")


def test_c_code_that_is_not_watched_keeps_confidence_from_being_high():
    build = found(own=built(Status.READY))
    bound = replace(OWN, sources=(replace(DECLARED, remarks=(), binding=Binding.PYBIND11),))
    assert conclude(build, QUIET, CLEAN, bound).unexercised == (
        ("races: C++ code is not watched, and what the classes of src/etree.c write to their objects is known from "
         "their source alone"),)
    without = replace(OWN, sources=(replace(SOURCE, remarks=SOURCE.remarks[1:]),))
    processes = MadeInside(build=make_build("3.14"), measured=ratio(1.8))
    interpreters = inside(finding(), measured=ratio(1.8))
    for extensions, confidence in ((OWN, "medium"), (without, "high")):   # each process would have its own of them
        assert conclude_processes(processes, QUIET, CLEAN, extensions).confidence == confidence
        assert conclude_interpreters(interpreters, QUIET, CLEAN, extensions).confidence == confidence


def test_column_of_lost_c_code_names_the_project_itself():
    given = evaluation()
    lost = replace(finding(Status.LOST, InterpreterStatus.LOST), name="fastbits")
    own = OwnBuild(build="3.14", report=report(lost))
    shown = table(changed(given, builds=(found(own=own),), interpreters=(replace(inside(finding()), own=own),),
                          processes=()))
    column = [each.title for each in shown.columns].index("C lost")
    assert [row[column].value for row in shown.rows] == ["fastbits", "fastbits"]


def test_interpreters_refuse_its_own_as_they_do_packages():
    said = conclude_interpreters(replace(inside(finding()), own=TURNS_ON), QUIET)
    assert said.word is Verdict.BLOCKED
    assert "lxml 6.1 cannot be imported" in said.reasons[0]


@pytest.mark.parametrize("own", [FAILED, LACKS])
def test_nobody_knows_what_it_does_in_interpreters_when_it_was_not_built(own):
    said = conclude_interpreters(replace(inside(finding()), own=own), QUIET)
    assert said.word is Verdict.INCONCLUSIVE
    assert "behaviour in interpreters is unknown" in said.reasons[0]


def steps(own, extensions=OWN):
    return next_steps(found(own=own), extensions=extensions)


def test_step_says_what_is_to_be_declared_and_where_once_it_is_made_safe():
    mend, declare, *_ = steps(TURNS_ON)
    assert "make the 4 places safe without the GIL" in mend
    assert declare == (
        "3.14t: src/etree.c:90: declare that lxml.etree does without the GIL, after a look at the 4 other places "
        "that --explain extensions lists: {Py_mod_gil, Py_MOD_GIL_NOT_USED} among the module's slots")


@pytest.mark.parametrize(("binding", "words"), [
    (Binding.CYTHON, "# cython: freethreading_compatible = True"), (Binding.PYO3, "#[pymodule(gil_used = false)]"),
    (Binding.PYBIND11, "py::mod_gil_not_used()"), (Binding.NANOBIND, "FREE_THREADED in nanobind_add_module"),
    (Binding.CFFI, "build it with CFFI 2.0 or newer"), (Binding.MYPYC, "mypyc declares it by default")])
def test_step_is_in_the_words_of_the_binding(binding, words):
    own = OwnExtensions(modules=(replace(MODULE, binding=binding, sources=()),))
    assert words in steps(TURNS_ON, own)[0]


def test_step_that_several_modules_need_is_one():
    seen = lxml().seen
    both = replace(lxml(), seen=replace(seen, extensions=(seen.extensions[0], replace(
        seen.extensions[0], name="lxml.objectify"))))
    own = OwnExtensions(
        modules=(MODULE, replace(MODULE, name="lxml.objectify", sources=("src/objectify.c",))),
        sources=(replace(SOURCE, remarks=()), replace(SOURCE, file="src/objectify.c", remarks=())))
    (step,) = (each for each in steps(replace(TURNS_ON, report=report(both)), own) if "declare" in each)
    assert step == (
        "3.14t: src/etree.c:90, src/objectify.c:90: declare that lxml.etree, lxml.objectify do without the GIL, once "
        "they are safe to be called by several threads: {Py_mod_gil, Py_MOD_GIL_NOT_USED} among the module's slots")


def test_files_that_were_not_read_are_one_step_and_part_of_the_effort():
    remark = Remark(line=1, concern="not read", what="no parser is installed", instead="pip install it")
    own = OwnExtensions(modules=(MODULE,), left_out=7, sources=tuple(
        replace(SOURCE, file=file, declared=True, remarks=(remark,)) for file in ("a.c", "b.c")))
    told = concluded(found(own=TURNS_ON), extensions=own)
    assert [each for each in told.next_steps if "pip install" in each] == ["a.c, b.c: pip install it"]
    assert told.answer.effort.unknown.endswith("not read, so not known: a.c, b.c; 7 more sources not read, as there "
                                               "are too many")


def test_single_phase_takes_a_call_and_no_slot():
    seen = lxml().seen
    single = replace(lxml(), seen=replace(seen, extensions=(replace(seen.extensions[0], init="single-phase"),)))
    own = replace(TURNS_ON, report=report(single))
    assert "PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED)" in steps(own, OwnExtensions(modules=(
        replace(MODULE, sources=()),)))[0]


def test_step_to_build_is_there_when_it_was_not_built():
    assert any("have lxml.etree built (cc: not found): pip install -v ." in step for step in steps(LACKS))
    assert any("have the project itself built" in step for step in steps(FAILED))


@pytest.mark.parametrize("own", [None, built(Status.READY)])
def test_no_step_where_nothing_is_to_be_done(own):
    assert not any("declare" in step or "built" in step for step in steps(own))


def whole(own=TURNS_ON, extensions=OWN):
    made = evaluation()
    first, *others = builds_of(made)
    return changed(made, builds=(replace(first, own=own), *others), extensions=extensions)


def text(found):
    return " ".join(terminal.render(document(found), width=100).split())


def test_screen_names_modules_builds_and_places_in_short():
    shown = text(whole())
    assert "named by its build: lxml.etree (C API, setuptools); the build goes on without lxml.etree" in shown
    assert "3.14t: lxml.etree turns the GIL on" in shown
    assert ("src/etree.c: declares nothing, 1 variable that threads share, 3 borrowed references "
            "(lines 7, 20, 21 and 1 more)") in shown
    assert "--explain extensions lists every place" in shown
    assert "not built: pkg/_c.c:1: error: no such type" in text(whole(FAILED))
    assert "lxml.etree was not built: cc: not found" in text(whole(LACKS))


def test_answer_names_the_module_to_mend():
    plain_lxml = found(own=TURNS_ON)
    made = changed(evaluation(), builds=(plain_lxml,), extensions=replace(OWN, sources=()))
    assert "lxml.etree does not declare to do without the GIL" in made.answer.because


def test_copies_of_other_projects_files_are_said_to_be_so():
    copied = replace(OWN, sources=(SOURCE, replace(SOURCE, file="pythoncapi_compat.h", vendored=True)))
    shown = text(whole(extensions=copied))
    assert "pythoncapi_compat.h (a copy of another project's file): " in shown
    listed = " ".join(terminal.render(explained(whole(extensions=copied), "extensions"), width=200).split())
    assert "copies of other projects' files, to be mended there: pythoncapi_compat.h" in listed
    assert "all branches of #if in C code were read" in listed
    assert "as the compiler of 3.14t sees it" in " ".join(terminal.render(
        explained(whole(extensions=replace(copied, read_for="3.14t")), "extensions"), width=200).split())


def test_source_that_was_not_read_is_never_ready():
    unread = Remark(line=1, concern="not read", what="no parser is installed", instead="pip install it")
    extensions = replace(OWN, sources=(replace(DECLARED, remarks=(unread,)),))
    made = changed(evaluation(), builds=(found(own=built(Status.READY)),), extensions=extensions, races=CLEAN)
    assert conclude(found(own=built(Status.READY)), QUIET, CLEAN, extensions).word is Verdict.INCONCLUSIVE
    assert "src/etree.c: pip install it" in made.next_steps


def test_screen_says_nothing_of_them_where_there_are_none():
    assert "extension modules" not in text(whole(None, OwnExtensions()))


@pytest.mark.parametrize("name", ["extensions", "lxml.etree", "etree.c", "src/etree.c"])
def test_explain_lists_every_place(name):
    shown = " ".join(terminal.render(explained(whole(), name), width=200).split())
    assert "line 90: it does not declare to do without the GIL; to write: {Py_mod_gil" in shown
    for line in ("7 state static PyObject *cache", "20, 21, 40 borrowed reference PyDict_GetItem"):
        assert line in shown
    for sentence in ("state: guard it", "borrowed reference (PyDict_GetItem): PyDict_GetItemRef"):
        assert shown.count(sentence) == 1   # not once for each line
    assert ("named by its build" in shown.lower()) == (not name.endswith(".c") or name == "src/etree.c")


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_explain_cuts_nothing_off(width):
    instead = "set it in the module's exec slot and leave it alone, keep it in the module's state, or guard it now"
    source = replace(SOURCE, remarks=(replace(SOURCE.remarks[0], instead=instead),))
    shown = terminal.render(explained(whole(extensions=replace(OWN, sources=(source,))), "extensions"), width=width)
    assert instead in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= width


def test_explain_has_the_end_of_the_compilers_words():
    assert "cc -c pkg/_c.c" in terminal.render(explained(whole(FAILED), "extensions"), width=100)


def test_explain_knows_no_extensions_where_there_are_none():
    with pytest.raises(UnknownNameError, match="myapp has no extension modules of its own"):
        explained(whole(None, OwnExtensions()), "extensions")


def test_explain_of_what_it_did_not_look_at_says_why_and_what_can_be_asked_for():
    one = replace(whole(None, OwnExtensions()), development=Development(packages=("Mypy",), extras=(), lacking={}))
    with pytest.raises(UnknownNameError, match=r"mypy is for development alone.*gilscope doctor mypy; .*lxml, proto"):
        explained(one, "mypy")
    with pytest.raises(UnknownNameError, match=r"no package.* 'gone' .*--explain knows lxml, protobuf"):
        explained(one, "gone")


def test_markdown_has_the_places():
    assert "PyDict\\_GetItemRef" in markdown.render(explained(whole(), "extensions"))


def test_json_has_modules_sources_and_what_was_built():
    told = plain(whole())["details"]
    assert told["sections"]["sources"]["modules"][0]["name"] == "lxml.etree"
    assert told["sections"]["sources"]["sources"][0]["remarks"][1] == {
        "line": 20, "concern": "borrowed reference", "what": "PyDict_GetItem", "instead": "PyDict_GetItemRef"}
    own = told["sections"]["extensions"]
    assert own["3.14t"]["report"]["packages"][0]["extensions"][0]["gil"] == "used"
    assert "3.15t" not in own


def test_effort_counts_the_places_of_extension_modules_that_turn_the_gil_on():
    assert [*map(str, places(TURNS_ON, OWN))] == [f"src/etree.c:{line}" for line in (90, 7, 20, 21, 40)]
    unsafe = [f"src/etree.c:{line}" for line in (7, 20, 21, 40)]   # declared or not, built or not
    assert [*map(str, places(LACKS, OWN))] == [*map(str, places(None, OWN))] == unsafe
    told = answer(whole())
    assert "src/etree.c" in told.effort.files


WRITES = tuple(Remark(line=line, concern="unlocked write", what="self->first") for line in (9, 12))
KEEPS = replace(OWN, sources=(replace(SOURCE, declared=True, remarks=WRITES),))


def test_unlocked_writes_are_in_doubt_whatever_was_seen_running():
    ran = replace(found(own=built(Status.READY)), gain=gain({2: ratio(1.8)}))
    made = changed(evaluation(), builds=(ran,), extensions=KEEPS, races=CLEAN)
    said = conclude(ran, QUIET, CLEAN, KEEPS)
    assert said.word is Verdict.INCONCLUSIVE
    assert made.answer.decision is Decision.UNKNOWN
    assert [*map(str, made.answer.effort.places)] == ["src/etree.c:9", "src/etree.c:12"]
    assert made.answer.more.endswith("--explain extensions")
    assert next(each for each in made.plan if each.name == EXTENSIONS).state == "open"
    shown = text(made)
    assert ("Not known yet: 3.14t: its own compiled code relies on the GIL at 2 places "
            "(src/etree.c:9, src/etree.c:12), as far as its source shows (2 writes to fields without a lock): whether "
            "several threads reach the same objects there is not known") in shown
    assert "2 writes to fields without a lock" in shown
    assert "1. src/etree.c:9, src/etree.c:12: make the 2 places safe" in shown


def test_c_code_that_writes_to_no_object_stays_ready():
    pytest.importorskip("tree_sitter")
    extensions = find_extensions(ROOT / "tests" / "corpus" / "planted" / "cleanext")
    assert extensions.sources
    assert conclude(found(own=built(Status.READY)), QUIET, CLEAN, extensions).word is Verdict.READY


def test_module_without_a_name_is_the_subject_of_a_sentence_all_the_same():
    own = replace(LACKS, unbuilt=(
        UnbuiltModule(name="the module made by setup.py:27", why="it is made only if FAST", nameless=True),))
    assert conclude(found(own=own), QUIET, CLEAN).reasons[0] == (
        "the module made by setup.py:27 was not built, so its behaviour without the GIL is unknown: it is made only "
        "if FAST")


def test_unlocked_writes_of_cython_are_in_doubt_too():
    (source,) = KEEPS.sources
    mixed = replace(KEEPS, sources=(source, replace(source, file="p.pyx", language="Cython")))
    said = conclude(found(own=built(Status.READY)), QUIET, CLEAN, mixed)
    assert said.word is Verdict.INCONCLUSIVE
    assert said.reasons[0].startswith("its own compiled code relies on the GIL at 4 places")


@pytest.mark.parametrize(("modules", "runs"), [
    ([(Binding.MYPYC, ())], True), ([(Binding.CYTHON, ("a.py",)), (Binding.MYPYC, ())], True),
    ([(Binding.CYTHON, ("a.py", "b.pyx"))], False), ([(Binding.CYTHON, ())], False),
    ([(Binding.MYPYC, ()), (Binding.C_API, ("a.c",))], False), ([], False)])
def test_extension_modules_that_run_uncompiled_too(modules, runs):
    made = tuple(replace(MODULE, binding=binding, sources=sources) for binding, sources in modules)
    assert OwnExtensions(modules=made).runs_uncompiled is runs
    assert not OwnExtensions(modules=made, unsure=("more",)).runs_uncompiled


def test_screen_says_that_races_were_looked_for_before_it_was_compiled():
    look = replace(CLEAN.looks[0], of="workload", workers=4, calls=9, uncompiled=True)
    without = replace(OWN, sources=(replace(SOURCE, remarks=()),))
    shown = text(changed(whole(extensions=without), races=replace(CLEAN, looks=(look,))))
    assert "9 times by 4 threads on 3.14t, as Python before it is compiled; what they did not run" in shown
    assert "C code is not watched" not in shown


def test_places_are_counted_by_line_wherever_they_are_told():
    (source,) = KEEPS.sources
    twice = replace(KEEPS, sources=(replace(source, declared=False, remarks=(*WRITES, replace(WRITES[1], what="b"))),))
    made = whole(extensions=twice)
    assert "2 writes to fields without a lock (lines 9, 12)" in text(made)
    told = " ".join(next_steps(found(own=TURNS_ON), extensions=twice))
    assert "after a look at the 2 other places that --explain extensions lists" in told
    assert "make the 2 places safe" in told


@pytest.mark.parametrize(("binding", "said"), [(Binding.MYPYC, False), (Binding.CFFI, False), (Binding.C_API, True)])
def test_source_of_which_the_builder_declares_it_says_nothing_itself(binding, said):
    source = replace(SOURCE, file="a.py", binding=binding, declared=True, remarks=(), declare=how_to_declare(binding))
    assert ("a.py: declares to do without the GIL" in text(whole(extensions=replace(OWN, sources=(source,))))) is said
