"""Made-up figures of every kind, each with something hard to lay out."""

import math

from gilscope.toolkit.report.figures.figure import (
    Axis,
    CategoryFigure,
    CategoryPanel,
    Lane,
    LineFigure,
    LinePanel,
    Rule,
    Series,
    TimelineFigure,
    TimelinePanel,
    seconds_axis,
)

NAN = math.nan
THREADS = (1.0, 2.0, 4.0, 8.0)


def measured(name, y, x=THREADS, model=""):
    return Series(name, x[: len(y)], tuple(y), tuple(v * 0.95 for v in y), tuple(v * 1.05 for v in y), model=model)


def past(name, y, x=THREADS):
    return Series(name, x[: len(y)], tuple(map(float, y)), style="history")


def lines():
    panel = LinePanel("", (
        measured("3.14 threads", (2.1, 2.2, 2.3, 2.4), model="threads"),
        measured("3.14t free-threaded", (2.2, 1.1, 1.15, 1.12), model="free-threaded"),
        measured("3.14t GIL on (control)", (2.2, 2.3, NAN, 2.35), model="threads"),
        past("Beazley 2009, Python 2.6", (2.46, 4.55)),
        past("Skvortsov 2021, Python 3.9", (0.652, 0.652, 0.655, 0.659)),
    ), (Rule(1.0, "half of one thread's time", "y"),))
    title = "Counting down from 100,000,000 in 1 to 8 threads: the same work, over more and more of them"
    return LineFigure("lines", title, Axis("threads (number)"), Axis("time for all the work (s)"), (panel,),
                      note="Source: D. Beazley 2009, Inside the Python GIL. The control runs with its GIL on. " * 2,
                      made="Measured on 2026-11-21 on AMD EPYC (2 cores), Linux; --quick, 6 rounds")


def log_lines(panels=8):
    intervals = (1e-6, 1e-5, 1e-4, 1e-3, 5e-3, 1e-2, 1e-1)

    def panel(number):
        series = [measured(f"{n:.0f} threads", [2 + n * 3e-6 / i for i in intervals], intervals) for n in THREADS]
        history = past("2021, 8 threads", (86, 20, 8, 7, 6.9, 6.9, 6.9), intervals)
        return LinePanel(f"3.{number} on a machine with a long name", (*series, history),
                         (Rule(5e-3, "default 5 ms"), Rule(1e-2, "another")))

    return LineFigure("log-lines", "Countdown over switch intervals", seconds_axis("switch interval", log=True),
                      seconds_axis("time for all the work", log=True), tuple(map(panel, range(12, 12 + panels))))


def band():
    places = tuple(map(float, range(40)))
    return LineFigure("band", "Many values", Axis("request (number)"), Axis("latency (ms)"), (
        LinePanel("", (measured("3.14", [5 + math.sin(x / 5) for x in places], places),)),))


def bars():
    names = ("sequential", "2 threads", "2 threads pinned to one core", "2 gevent-patched threads", "2 processes")
    where = tuple(map(float, range(5)))
    panel = CategoryPanel("", names, (
        measured("3.14", (2.1, 2.2, 2.15, 2.13, 1.1), where), measured("3.14t", (2.3, 1.2, 2.4, NAN, 1.2), where),
        past("Habr 2012, scaled", (2.08, 2.65, 2.09, NAN, NAN), where),
    ))
    return CategoryFigure("bars", "Two counting loops, pinned and not", Axis("time for both loops (s)"), (panel,),
                          "how the two loops are run",
                          note="Source: Habr 2012. gevent does not load on free-threaded builds.")


def log_bars():
    where = (0.0, 1.0, 2.0)
    panels = (CategoryPanel(title, ("sequential", "subinterpreters", "4 threads"), tuple(
        measured(f"series {i}", (2.0 * i + 1, 0.01 * (i + 1), 3.0), where) for i in range(7)),
        (Rule(0.1, "a tenth", "y"),)) for title in ("3.14", "3.14t"))
    return CategoryFigure("log-bars", "Two panels, seven series", seconds_axis("time", log=True), tuple(panels), "run")


def timelines():
    runs, waits, blocked = states = ("runs with the GIL", "waits for the GIL", "blocked outside of Python")

    def turns(name, first):
        return Lane(name, tuple((0.005 * i, 0.005 * (i + 1), (runs, waits)[(i + first) % 2]) for i in range(10)))

    request = tuple((0.01 * i + 0.0098, "request arrives") for i in range(5))
    sleeps = tuple((0.01 * i, 0.01 * i + 0.0098, blocked) for i in range(5))
    serving = Lane("I/O thread (an echo server)", sleeps, request)
    return TimelineFigure(
        "timelines", "Who holds the GIL: two CPU threads, and a CPU thread beside one that answers requests",
        seconds_axis("time since the start"), states, runs, "how many run at once", (
            TimelinePanel("3.14, two CPU threads", (turns("thread 1", 0), turns("thread 2", 1))),
            TimelinePanel("3.14, CPU beside I/O", (turns("CPU thread", 0), serving)),
            TimelinePanel("3.14t", ()),
        ))


def nothing():
    """What is left when every cell was skipped."""
    return LineFigure("nothing", "Nothing measured", Axis("threads (number)", log=True), Axis("time (s)", log=True), (
        LinePanel("3.14", (Series("threads", (1.0, 2.0), (NAN, 0.0)),)), LinePanel("3.14t", ())))


FIGURES = {make.__name__: make for make in (
    lines, log_lines, band, bars, log_bars, timelines, nothing)}
