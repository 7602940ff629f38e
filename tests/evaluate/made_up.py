"""Made-up findings and evaluations: nothing is run for them."""

from dataclasses import dataclass, replace
from pathlib import Path

from gilscope.toolkit.evaluate.evaluation import Evaluation
from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding
from gilscope.toolkit.evaluate.packages.evidence import (
    Distribution,
    Extension,
    ExtensionLoad,
    ImportRun,
    ImportStep,
    InterpreterReason,
    InterpreterStatus,
    PackageEvidence,
    PackageVerdict,
    Status,
)
from gilscope.toolkit.evaluate.project.cost_and_gain import CostsAndGains, OtherModel
from gilscope.toolkit.evaluate.project.discovery import Project
from gilscope.toolkit.evaluate.project.extensions.own_extensions import NO_EXTENSIONS
from gilscope.toolkit.evaluate.project.suite.running import error_line, missing_modules
from gilscope.toolkit.evaluate.request import EvaluationRequest
from gilscope.toolkit.evaluate.requirements.wheel_for_build import WheelChoice
from gilscope.toolkit.evaluate.sections import (
    UNASKED,
    BuildSpeed,
    CommandEnding,
    Contention,
    Cost,
    Gain,
    InterpreterTrial,
    MachineFacts,
    Memory,
    Missing,
    NativePool,
    Place,
    RaceFact,
    RaceLook,
    Races,
    TestRun,
)
from gilscope.toolkit.evaluate.verdict import judged
from gilscope.toolkit.gil.records import WaitReason
from gilscope.toolkit.model import Build
from gilscope.toolkit.stats.verdict import MIN_ROUNDS, Comparison
from tests.fakes import make_build

NOT_DONE = Missing(reason="not asked for")
QUIET = MachineFacts(cores=2, effective=1.95, run_queue=0.02, governor=None, libc="glibc 2.36", doubts=())
CACHE = Place(file="cache.py", line=41, what="", seconds=1.0)
MEMORY = Memory(here=74.5 * 2**20, there=62.5 * 2**20, process="the process of the workload with 2 threads")
LOOK = RaceLook(of="tests", build="3.14t", threads=True, together=True)
CLEAN = Races(build="3.14t", found=(), command=("pytest",), looks=(LOOK,), shared=())


@dataclass(frozen=True)
class Made:
    """The results of an evaluation on one build without a GIL."""

    build: Build
    readiness: object
    tests: object
    reference_tests: object
    cost: object
    gain: object
    contention: object
    offered: object = NOT_DONE
    failure: object = None
    forced: object = None
    own: object = None
    differs: str = ""

    @property
    def speed(self):
        return BuildSpeed(cost=self.cost, gain=self.gain, contention=self.contention, failure=self.failure,
                          forced=self.forced, differs=self.differs)


@dataclass(frozen=True)
class MadeInside:
    """Its results of subinterpreters on one build with a GIL, or of processes."""

    build: Build
    measured: object
    readiness: object = None   # None: of processes
    failure: str = ""
    trial: object = UNASKED
    own: object = None


def ratio(value, *, width=0.02, rounds=20, floor=0.01):
    wide = max(width, floor)
    return Comparison(ratio=value, lo=value * (1 - width), hi=value * (1 + width),
                      floor=floor if rounds >= MIN_ROUNDS else None, rounds=rounds,
                      verdict_interval=(value * (1 - wide), value * (1 + wide)))


def finding(status=Status.READY, interpreters=InterpreterStatus.OK, *reasons):
    distribution = Distribution(name="lxml", version="6.1", modules=("lxml",), inner=(), extensions=(), tags=(),
                                pure=False)
    return Finding(name="lxml", version="6.1", requested=True, seen=PackageEvidence(distribution=distribution),
                   verdict=PackageVerdict(status=status, reasons=reasons), interpreters=interpreters,
                   interpreter_reasons=tuple(map(InterpreterReason, reasons)))


def ended(text):
    """Return an ending by its words: "1", "crash: SIGSEGV", "unfinished: not done within 54 s, at 25 %"."""
    kind, _, detail = text.partition(": ")
    if not detail:
        return CommandEnding(kind="exit", code=int(kind))
    detail, at, percent = detail.removesuffix(" %").partition(", at ")
    return CommandEnding(kind=kind, detail=detail, percent=int(percent) if at else None)


def report(*findings, unowned=()):
    return BuildReport(build=make_build("3.14t"), reference=make_build("3.14"), findings=findings, others=3,
                       unowned=unowned)


def suite(**changes):
    usual = TestRun(build="3.14t", command=("pytest",), passed=412, failed=0, errors=0, seconds=9.0,
                    ending=CommandEnding(kind="exit"), gil_end=False, culprits=(), output="")
    run = replace(usual, **changes | ({"ending": ended(changes["ending"])} if "ending" in changes else {}))
    return replace(run, error=error_line(run.output), missing_modules=missing_modules(run))


def gain(measured=NOT_DONE, wait=0.58):
    return Gain(against="3.14", wait_share=wait, ceiling=1.9, measured=measured)


def found(**changes):
    usual = Made(
        build=make_build("3.14t"), readiness=report(finding()), tests=suite(),
        reference_tests=suite(build="3.14", gil_end=True),
        cost=Cost(against="3.14", cpu=ratio(0.95), import_seconds=0.1),
        gain=gain({2: ratio(1.8)}), contention=Contention(inflation=1.02, parked=0.01, places=()))
    return replace(usual, **changes)


def inside(*findings, measured=NOT_DONE, failure="", trial=NOT_DONE):
    return MadeInside(build=make_build("3.14"), readiness=report(*findings), measured=measured,
                      failure=failure, trial=trial)


def trial(**changes):
    usual = InterpreterTrial(modules=("lxml", "protobuf", "orjson", "myapp"), refused=(), memory=9 * 2**20,
                             process_memory=11 * 2**20)
    return replace(usual, **changes)


PROJECT = Project(
    root=Path("/src/myapp"), name="myapp", requirements=("lxml", "protobuf", "orjson"), test_requirements=("pytest",),
    lock=Path("/src/myapp/uv.lock"), tests=("python", "-m", "pytest", "-q"), sources=(Path("/src/myapp/src"),),
    modules=("myapp",), about_requirements=("requirements: [project] of pyproject.toml",),
    about_modules="modules: myapp (src/)", about_lock_and_tests=("lock: uv.lock",), installable=True)
ETREE = "/env/lib/site-packages/lxml/etree.cpython-314t-x86_64-linux-gnu.so"
REFUSED = "ImportError: module lxml.etree does not support loading in subinterpreters"


def imports(*loads, gil_on=True):
    return ImportRun(imported=("lxml",), failed=(), loads=loads, kind="done", reason="", during="", gil_on=gil_on,
                     stdlib=())


def load(**changes):
    usual = ExtensionLoad(name="lxml.etree", file=ETREE, gil="used", flipped=True, error=None, part="roots",
                          chain=(ImportStep(module="lxml.html", file="/env/lib/site-packages/lxml/html/__init__.py",
                                            line=41),))
    return replace(usual, **changes)


def lxml():
    """Return a package with one extension that needs the GIL and cannot be loaded in a subinterpreter."""
    needs = Extension(name="lxml.etree", file=ETREE, init="multi-phase", gil="used")
    owned = replace(finding().seen.distribution, extensions=(("lxml.etree", ETREE),))
    seen = PackageEvidence(distribution=owned, extensions=(needs,), run=imports(load()),
                           interpreters=(imports(load(gil=None, flipped=False, error=REFUSED)),))
    return replace(finding(Status.GIL, InterpreterStatus.FAILS, "lxml.etree needs the GIL (seen by hook and import)"),
                   seen=seen)


def protobuf():
    return replace(finding(Status.LOST, InterpreterStatus.OK, "google._upb._message is not in its wheel"),
                   name="protobuf", version="7.36.2")


def concluded(*builds, machine=QUIET, races=CLEAN, project=PROJECT, seconds=252.0, interpreters=(), processes=(),
              extensions=NO_EXTENSIONS, sections=None, **others):
    """Return an evaluation of those builds with its facts and all that they come to."""
    interpreters = interpreters or tuple(inside() for _ in processes)
    counterparts = {each.build.label: make_build(each.build.label.removesuffix("t")) for each in builds}
    speed = CostsAndGains(
        machine=machine, speed={each.build.label: each.speed for each in builds}, models_compared=bool(processes),
        others={(model, each.build.label): OtherModel(measured=each.measured, failure=each.failure)
                for model, some in (("subinterpreters", interpreters), ("processes", processes)) for each in some})
    measured = {
        "packages": {each.build.label: each.readiness for each in builds},
        "interpreters": {each.build.label: each.readiness for each in interpreters},
        "sources": extensions,
        "extensions": {each.build.label: each.own for each in (*builds, *interpreters) if each.own},
        "trial": {each.build.label: each.trial for each in interpreters},
        "tests": {label: run for each in builds for label, run in (
            (each.build.label, each.tests), (counterparts[each.build.label].label, each.reference_tests))},
        "races": races, "speed": speed}
    return judged(Evaluation(
        project=project, builds=tuple(each.build for each in builds), seconds=seconds, named=extensions,
        counterparts=counterparts, with_gil=tuple(each.build for each in interpreters),
        offered={each.build.label: each.offered for each in builds}, sections=measured | (sections or {}),
        **{"request": EvaluationRequest(path=Path())} | others))


def builds_of(given):
    """Return what an evaluation found on each build without a GIL."""
    return [Made(build=build, readiness=given.packages[label], tests=given.tests[label], own=given.own.get(label),
                 reference_tests=given.tests_with_gil(label), offered=given.offered[label], cost=speed.cost,
                 gain=speed.gain, contention=speed.contention, failure=speed.failure, forced=speed.forced,
                 differs=speed.differs)
            for build in given.builds for label in (build.label,) for speed in (given.speed[label],)]


def changed(given, **changes):
    """Return an evaluation with other findings, and all that they come to."""
    interpreters, processes = (
        [MadeInside(build=build, readiness=given.packages[label], trial=given.trials[label], own=given.own.get(label),
                    measured=other.measured, failure=other.failure)
         for build in some for label in (build.label,) for other in (given.rounds.other_model(model, label),)]
        for model, some in (("subinterpreters", given.with_gil), ("processes", given.with_processes)))
    usual = {"builds": builds_of(given), "interpreters": interpreters, "processes": processes,
             "machine": given.machine, "races": given.races, "extensions": given.extensions, "project": given.project,
             "seconds": given.seconds, "request": given.request}
    parts = usual | changes
    return concluded(*parts.pop("builds"), **parts)


def conclude(build, machine=QUIET, races=CLEAN, extensions=NO_EXTENSIONS):
    """Return the verdict on one build."""
    return concluded(build, machine=machine, races=races, extensions=extensions).conclusions[0]


def conclude_interpreters(build, machine=QUIET, races=UNASKED, extensions=NO_EXTENSIONS):
    """Return the verdict on subinterpreters of one build."""
    return concluded(machine=machine, races=races, extensions=extensions, interpreters=(build,)).conclusions[0]


def conclude_processes(build, machine=QUIET, races=UNASKED, extensions=NO_EXTENSIONS):
    """Return the verdict on processes of one build."""
    return concluded(machine=machine, races=races, extensions=extensions, processes=(build,)).conclusions[1]


def next_steps(*builds, races=CLEAN, measuring="", extensions=NO_EXTENSIONS, **others):
    """Return the next steps of those builds, without the last one to try what is ready."""
    found = concluded(*builds, races=races, extensions=extensions, project=replace(PROJECT, measuring=measuring),
                      **others)
    return tuple(step for step in found.next_steps if not step.startswith("try "))


def evaluation(*, machine=QUIET):
    """Return a project with something in every section: two builds, of which one lacks a part of everything."""
    race = RaceFact(kind="lost update", variable="Counter.total", file="src/myapp/counter.py", line=17, confirmed=True)
    races = replace(CLEAN, found=(race, replace(race, variable="Pool.free", line=88, confirmed=False)))
    blocked = replace(report(lxml(), protobuf()), newest={"lxml": ("7.0", Status.READY)})
    asked = Place(file="src/myapp/io.py", line=3, what="lxml.etree", way=("site-packages/lxml/html/__init__.py:41",))
    first = found(
        readiness=blocked, tests=suite(gil_end=True, culprits=("lxml.etree",), imports=(asked,)),
        cost=Cost(against="3.14", cpu=ratio(0.8), import_seconds=0.1, import_there=0.08, memory=MEMORY),
        gain=gain({2: ratio(1.5), 4: ratio(1.6)}),
        contention=Contention(inflation=2.9, parked=0.06, threads=2, cores=2,
                              places=(replace(CACHE, what="a dict", wait=WaitReason.OBJECT),),
                              pools=(NativePool(library="OpenBLAS", threads=2),)))
    offered = (WheelChoice(name="lxml", version="6.1", kind="binary", wheel="lxml.whl"),
               WheelChoice(name="orjson", version="3.13", kind="sdist", note="no wheel for 3.15t"))
    second = Made(
        build=make_build("3.15t"), offered=offered, readiness=Missing(reason="offline"), tests=NOT_DONE,
        reference_tests=NOT_DONE, cost=NOT_DONE, gain=NOT_DONE, contention=NOT_DONE)
    interpreters = (inside(lxml(), protobuf(), measured=NOT_DONE, trial=trial()),)
    processes = (MadeInside(build=make_build("3.14"), measured=ratio(1.7)),)
    return concluded(first, second, machine=machine, races=races, interpreters=interpreters, processes=processes)
