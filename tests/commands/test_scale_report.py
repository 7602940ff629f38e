"""The report of `gilscope scale`: numbers point at the footnote that explains them, and a gain is a sentence."""

from gilscope.toolkit.commands.scale.report import document
from gilscope.toolkit.report.document import Table
from gilscope.toolkit.report.terminal import render
from gilscope.toolkit.scale.investigation import BlamedObject, ScalingInvestigation
from gilscope.toolkit.scale.judgement import Judgement, Obstacle, ScalingEvidence, ScalingVerdict, Span
from gilscope.toolkit.scale.scaling_values import BuildScaling
from gilscope.toolkit.scale.zygote_process import LoadedFunction
from tests.fakes import make_build


def slower():
    """Return a function that counts of one object make slower."""
    half = Span(ratio=0.5, lo=0.4, hi=0.6)
    found = ScalingInvestigation(
        threads=2, rates={}, explained=1.0, without=1.2, queued_share=0.0, switches=0.0, measurements=9, seconds=20.0,
        loaded=LoadedFunction(seconds_per_call=1e-5, payloads=0, dealt=False, objects=100, gil=False, refused=None,
                              bytecode=True),
        evidence=ScalingEvidence(threads=2, clean_seconds=0.1, enough=True, of_ceiling=half, speedup=half, ceiling=1.8,
                                 immortal=Span(ratio=2.4, lo=2.0, hi=2.8)),
        judgement=Judgement(verdict=ScalingVerdict.SLOWER, obstacle=Obstacle.COUNTS), also=(),
        objects=(BlamedObject(name="app.PRICES", kind="global", type="list"),))
    return document("app:work", 2, [BuildScaling(build=make_build("3.14t"), found=found)])


def test_every_footnote_is_pointed_at():
    (table,) = (each for each in slower().sections if isinstance(each, Table))
    marks = {mark for row in table.rows for entry in row for mark in entry.marks}
    assert marks == set(range(1, len(table.footnotes) + 1))


def test_gain_is_told_as_a_sentence():
    said = " ".join(render(slower()).split())
    assert "it reached 1.20 of the ceiling: without counting, about 100 % of the loss disappears." in said
