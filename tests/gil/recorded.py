"""Made-up records: two threads that take turns, one that is parked."""

from gilscope.toolkit.gil.records import (
    HISTOGRAM,
    Process,
    SpanKind,
    SpanTotal,
    Thread,
    ThreadSpan,
    WaitReason,
    WaitSite,
)

NONE = SpanTotal(0, 0.0, 0.0, 0.0)


def make_total(spans, kind):
    found = [span for span in spans if span.kind is kind]
    if not found:
        return NONE
    longest = max(found, key=lambda span: span.seconds)
    return SpanTotal(len(found), sum(span.seconds for span in found), longest.seconds, longest.begin)


def make_thread(number, spans, *, name="python3.13", entry="spin", main=False, end=1.0, **changes):
    fields = {
        "number": number, "tid": 100 + number, "name": name, "called": "", "entry": entry, "main": main, "ended": True,
        "start": 0.0, "end": end, "totals": {kind: make_total(spans, kind) for kind in SpanKind},
        "attempts": sum(span.attempts for span in spans), "timeouts": sum(span.timeouts for span in spans),
        "handovers": 3, "acquired": 4, "acquired_free": 1, "histogram": (0,) * HISTOGRAM, "cpu": 0.5,
        "run_queue": 0.01, "voluntary": 5, "involuntary": 2, "yields": 0, "spans": tuple(spans),
        "spans_lost": 0, "sampling": 1e-6, "unfinished": None, "unfinished_at": 0}
    return Thread(**{**fields, **changes})


def make_site(line, reason=WaitReason.GIL, *, thread=1, on="", idle=False, waited=NONE, parked=NONE, held=NONE,
              caused=0.0, function="spin", caller=None, file="/home/me/program.py"):
    return WaitSite(thread=thread, file=file, line=line, function=function, caller=caller, reason=reason, on=on,
                    idle=idle, waited=waited, parked=parked, held=held, caused=caused)


def make_process(**changes):
    """Return a process of 1 s: two threads that take turns of 0.1 s, and main, which waits for their end."""
    def spans(number):
        turns = [(turn / 10, (turn + 1) / 10) for turn in range(10)]
        return [ThreadSpan(SpanKind.HOLD, *turn, 4 + number, 0, 0, None, 0) if position % 2 == number - 1
                else ThreadSpan(SpanKind.WAIT, *turn, number, 2, 1, 3 - number, 0)
                for position, turn in enumerate(turns)]

    idle = [ThreadSpan(SpanKind.IDLE, 0.0, 0.9, 3, 0, 0, None, 0),
            ThreadSpan(SpanKind.PARK, 0.9, 0.95, 4, 0, 0, None, 0)]
    sites = (
        None, make_site(5, waited=SpanTotal(5, 0.5, 0.1, 0.1)),
        make_site(5, thread=2, waited=SpanTotal(5, 0.5, 0.1, 0.0)),
        make_site(9, WaitReason.OTHER, thread=0, idle=True, parked=SpanTotal(1, 0.9, 0.9, 0.0), function="Thread.join"),
        make_site(7, WaitReason.OBJECT, thread=0, on="list", parked=SpanTotal(1, 0.05, 0.05, 0.9), function="add"),
        make_site(6, held=SpanTotal(5, 0.5, 0.1, 0.0), caused=0.5),
        make_site(6, thread=2, held=SpanTotal(5, 0.5, 0.1, 0.1), caused=0.5))
    fields = {
        "pid": 100, "parent": 1, "version": "3.13.1", "free_threaded": False, "sites_known": True, "ended": True,
        "forked": False, "all_holds": True, "gil_used": True, "started": 5000.0, "seconds": 1.0,
        "executable": "/usr/bin/python3.13",
        "command": ("python", "program.py"), "sites": sites, "threads_lost": 0, "sites_lost": 0, "gils_lost": 0,
        "switch_interval": 0.005, "looks": 0, "clock_cost": 2e-8, "hold_cost": 5e-8,
        "threads": (make_thread(0, idle, entry="<module>", main=True), *(make_thread(n, spans(n)) for n in (1, 2)))}
    return Process(**{**fields, **changes})
