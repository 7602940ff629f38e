"""Made-up answers of `gilscope scale`."""

from dataclasses import replace

from gilscope.toolkit.scale.api import CallableOutcome, CallableScaling
from gilscope.toolkit.scale.blamed_object import BlamedObject
from gilscope.toolkit.scale.investigation import ScalingInvestigation
from gilscope.toolkit.scale.judgement import Judgement, Obstacle, ScalingEvidence, ScalingVerdict, Span
from gilscope.toolkit.scale.scaling_values import BuildScaling, ScalingAnswer
from gilscope.toolkit.scale.zygote_process import CodePlace, LoadedFunction
from tests.fakes import make_run


def slower_investigation(**changes):
    """Return a function that counts of one object make slower."""
    half = Span(ratio=0.5, lo=0.4, hi=0.6)
    found = ScalingInvestigation(
        threads=2, rates={}, explained=1.0, without=1.2, queued_share=0.0, switches=0.0, measurements=9, set_aside=0,
        handoff=None, far=None, seconds=20.0,
        loaded=LoadedFunction(seconds_per_call=1e-5, payloads=0, dealt=False, objects=100, gil=False, refused=None,
                              bytecode=True),
        evidence=ScalingEvidence(threads=2, clean_seconds=0.1, enough=True, of_ceiling=half, speedup=half,
                                 ceiling=Span(ratio=1.8, lo=1.7, hi=1.9), immortal=Span(ratio=2.4, lo=2.0, hi=2.8)),
        judgement=Judgement(verdict=ScalingVerdict.SLOWER, obstacle=Obstacle.COUNTS), also=(),
        objects=(BlamedObject(name="app.PRICES", kind="global", type="list", places=(
            CodePlace(file="app.py", line=7, function="work"), CodePlace(file="app.py", line=9, function="work"))),),
        trial=None)
    return replace(found, **changes)


def of_function(found=None, *, label="3.14t", version="3.14.7", problem=""):
    """Return what is known of app:work on a build."""
    callables = () if found is None else (CallableScaling(
        name="app:work", outcome=CallableOutcome(found.judgement.verdict.value), found=found,
        seconds_per_call=found.loaded.seconds_per_call),)
    return BuildScaling(label=label, version=version, callables=callables, problem=problem)


def make_answer(*builds, subject="app:work", **changes):
    """Return the answer about a function, or with the name of a module about that."""
    answer = ScalingAnswer(
        subject=subject, threads=2, started="2026-11-27T03:00:00+00:00", machine=make_run().machine,
        command="gilscope scale app:work --json scale.json", builds=builds)
    return replace(answer, **changes)
