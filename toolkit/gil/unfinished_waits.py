"""Unfinished waits of killed processes: the last activity of its threads explains a program that hangs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gilscope.toolkit.gil.records import SpanKind, SpanTotal, ThreadSpan
from gilscope.toolkit.gil.summary import thread_labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.gil.records import CodeLine, Process, Thread, WaitSite


@dataclass(frozen=True, slots=True, kw_only=True)
class LastActivity:
    """The last known activity of a thread of a killed process."""

    thread: str
    kind: SpanKind
    place: CodeLine | None
    seconds: float     # its duration up to the end of the recording


def last_seen(processes: Sequence[Process]) -> tuple[LastActivity, ...]:
    """Return the last activities of threads of killed processes, the longest first.

    A hold of the GIL that no thread waits for is left out.
    """
    found = []
    for process in processes:
        names = thread_labels(process, processes)
        for thread, kind, since in _cut_off(process):
            site = process.sites[thread.unfinished_at]
            found.append(LastActivity(thread=names[thread.number], kind=kind, place=site.own if site else None,
                                      seconds=process.seconds - since))
    return tuple(sorted(found, key=lambda each: -each.seconds))


def with_unfinished(process: Process) -> Process:
    """Return the process with its unfinished waits and hold added, up to the end of the recording."""
    cut_off = list(_cut_off(process))
    waiting = [since for _, kind, since in cut_off if kind is SpanKind.WAIT]
    threads = {thread.number: thread for thread in process.threads}
    sites = list(process.sites)
    for thread, kind, since in cut_off:
        if kind not in {SpanKind.WAIT, SpanKind.HOLD}:
            continue
        span = ThreadSpan(kind, since, process.seconds, thread.unfinished_at, 0, 0, None, 0)
        total = _added(thread.totals[kind], span)
        threads[thread.number] = replace(thread, spans=(*thread.spans, span), totals={**thread.totals, kind: total})
        site = sites[thread.unfinished_at]
        if site is not None:
            sites[thread.unfinished_at] = _site(site, span, waiting)
    return replace(process, threads=tuple(threads.values()), sites=tuple(sites))


def _cut_off(process: Process) -> Iterator[tuple[Thread, SpanKind, float]]:
    """Yield thread, activity and begin of each unfinished activity."""
    if process.ended:
        return
    doing = [(thread, *thread.unfinished) for thread in process.threads
             if thread.unfinished is not None and not thread.ended]
    waiting = [since for _, kind, since in doing if kind is SpanKind.WAIT]
    for thread, kind, since in doing:
        if kind is not SpanKind.HOLD:
            yield thread, kind, since
        elif waiting:    # a hold counts only from the first wait for it on
            yield thread, kind, max(since, min(waiting))


def _site(site: WaitSite, span: ThreadSpan, waiting: Iterable[float]) -> WaitSite:
    if span.kind is SpanKind.WAIT:
        return replace(site, waited=_added(site.waited, span))
    caused = sum(span.end - max(begin, span.begin) for begin in waiting)
    return replace(site, held=_added(site.held, span), caused=site.caused + caused)


def _added(before: SpanTotal, span: ThreadSpan) -> SpanTotal:
    """Return a total with one more span."""
    longest = (span.seconds, span.begin) if span.seconds > before.longest else (before.longest, before.longest_at)
    return SpanTotal(before.count + 1, before.seconds + span.seconds, *longest)
