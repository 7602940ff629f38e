"""Waits that a killed process was in: a program that hangs is told by what its threads were doing when it was ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gilscope.toolkit.gil.records import Kind, Span, Total
from gilscope.toolkit.gil.summary import thread_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.gil.records import Line, Process, Site, Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """What one thread of a process without an end was doing at the last moment that is known."""

    thread: str
    kind: Kind
    place: Line | None
    seconds: float     # for how long, up to that moment


def last_seen(processes: Sequence[Process]) -> tuple[Last, ...]:
    """Return what threads of processes without an end were doing, those first that did it longest.

    To have the GIL while nobody waits for it says nothing: it is left out.
    """
    found = []
    for process in processes:
        names = thread_labels(process, processes)
        for thread, kind, since in _cut_off(process):
            site = process.sites[thread.unfinished_at]
            found.append(Last(thread=names[thread.number], kind=kind, place=site.own if site else None,
                              seconds=process.seconds - since))
    return tuple(sorted(found, key=lambda each: -each.seconds))


def with_unfinished(process: Process) -> Process:
    """Return the process with the waits and the hold that its end cut off, up to the last moment that is known."""
    cut_off = list(_cut_off(process))
    waiting = [since for _, kind, since in cut_off if kind is Kind.WAIT]
    threads = {thread.number: thread for thread in process.threads}
    sites = list(process.sites)
    for thread, kind, since in cut_off:
        if kind not in {Kind.WAIT, Kind.HOLD}:
            continue
        span = Span(kind, since, process.seconds, thread.unfinished_at, 0, 0, None, 0)
        total = _added(thread.totals[kind], span)
        threads[thread.number] = replace(thread, spans=(*thread.spans, span), totals={**thread.totals, kind: total})
        site = sites[thread.unfinished_at]
        if site is not None:
            sites[thread.unfinished_at] = _site(site, span, waiting)
    return replace(process, threads=tuple(threads.values()), sites=tuple(sites))


def _cut_off(process: Process) -> Iterator[tuple[Thread, Kind, float]]:
    """Yield thread, what it was doing, and since when, of those that have no end."""
    if process.ended:
        return
    doing = [(thread, *thread.unfinished) for thread in process.threads
             if thread.unfinished is not None and not thread.ended]
    waiting = [since for _, kind, since in doing if kind is Kind.WAIT]
    for thread, kind, since in doing:
        if kind is not Kind.HOLD:
            yield thread, kind, since
        elif waiting:    # a hold that began before anybody waited has no beginning of its own
            yield thread, kind, max(since, min(waiting))


def _site(site: Site, span: Span, waiting: Iterable[float]) -> Site:
    if span.kind is Kind.WAIT:
        return replace(site, waited=_added(site.waited, span))
    caused = sum(span.end - max(begin, span.begin) for begin in waiting)
    return replace(site, held=_added(site.held, span), caused=site.caused + caused)


def _added(before: Total, span: Span) -> Total:
    """Return a total with one more span."""
    longest = (span.seconds, span.begin) if span.seconds > before.longest else (before.longest, before.longest_at)
    return Total(before.count + 1, before.seconds + span.seconds, *longest)
