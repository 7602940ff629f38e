"""The answer of `gilscope gil` in a few lines: what limits the program, who and where, and what to do about it."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from gilscope.toolkit.gil.bottleneck import (
    LIMITERS,
    LIMITS,
    MOSTLY,
    Limiter,
    asleep_share,
    file_line,
    gil_waits,
    place_text,
)
from gilscope.toolkit.gil.recorder import BUSY
from gilscope.toolkit.gil.records import SpanKind, WaitReason
from gilscope.toolkit.gil.rerun_without_gil import took_as_long
from gilscope.toolkit.units import counted, format_seconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.gil.diagnosis import Diagnosis
    from gilscope.toolkit.gil.holders import Convoy, Holder, Stall
    from gilscope.toolkit.gil.records import CodeLine
    from gilscope.toolkit.gil.rerun_without_gil import WithoutGil
    from gilscope.toolkit.gil.summary import RecordingSummary, ThreadSummary, WaitPlace
    from gilscope.toolkit.gil.unfinished_waits import LastActivity

LONGEST_NAME, LONGEST_PLACE = 30, 30   # characters of one name, and of one place
ROOM, ROOM_OF_VICTIMS = 40, 100        # characters for the names of several threads; for those in a convoy
LEAST = 0.1          # of the longest wait of a thread: those that waited less are left out
MOST_LAST = 3        # threads of killed processes whose last activity is listed
HANGS = 1.0          # seconds that all threads wait for each other, from which on they hang
BRIEF = 1.0          # seconds, without waits for a core; one thread that fails earlier shows no limit
CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
MOST_SPREAD = 1.25   # longest run / shortest run; the median of runs that differ more says little
WHOLE_RATIOS = 10    # a speed-up from this on is written without a fraction
LAST = {SpanKind.WAIT: "waited for the GIL", SpanKind.HOLD: "had the GIL", SpanKind.SWITCH: "handed the GIL over",
        SpanKind.PARK: "was parked, for a lock or an object", SpanKind.IDLE: "waited for another thread",
        SpanKind.SPIN: "spun"}
ADVICE = {
    Limiter.GIL: "`gilscope run MODULE:FUNCTION` compares threads, processes, subinterpreters and free threads",
    Limiter.LOCK: "hold the lock for a shorter time, or use several locks",
    Limiter.OBJECT: "give each thread its own object, and combine the results",
    Limiter.CORES: "run it on a quiet machine",
    Limiter.IO: "if it waits for one thing after another, use threads or asyncio to wait for all at once",
    Limiter.UNKNOWN: "let its processes end by themselves, not by os._exit or a signal",
}
COMPUTING = "run it on a quiet machine, or with no more threads than cores"
DEADLOCK = "take locks in one order everywhere, and none twice; end what others wait for"
ONE_THREAD = "`gilscope run MODULE:FUNCTION` measures what several workers would gain"
# What waits do not show: threads that count references to one object slow each other down, and none of them waits.
SHARING = "if it is slower than its cores allow, `gilscope scale MODULE:FUNCTION` names the object"
_NUMBERED = re.compile(r"(.*\D)?(\d+)( \(.*\)|: .*)?")


def answer_lines(found: Diagnosis) -> tuple[str, ...]:
    """Return the answer: at most eleven lines of 100 columns, first how it failed, if it did, and the limit."""
    ending, summary = _ending_text(found), found.summary
    if found.exit > 0 and len(summary.threads) == 1 and summary.wall - (summary.run_queue or 0.0) < BRIEF:
        return ending
    texts = [*ending, _limit_text(found), *_who(found)]
    if found.elsewhere is not None:
        texts.append(_gain_text(found.elsewhere, found))
    if step := DEADLOCK if _hung(found) >= HANGS else _next_step(found):
        texts.append(f"do: {step}")
    if doubt := _doubt(found):
        texts.append(f"careful: {doubt}")
    return tuple(texts)


def _ending_text(found: Diagnosis) -> tuple[str, ...]:
    """Return how the program failed; nothing if it did not."""
    if found.exit >= 0:
        return (f"It ended with exit code {found.exit}, its own.",) if found.exit else ()
    number = -found.exit
    name = signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"
    how = f"It crashed ({name})" if number in CRASHES else f"{name} ended it"
    return (f"{how}: waits count up to the last that is known.",)


def _limit_text(found: Diagnosis) -> str:
    """Return the bottleneck of the program; the GIL does not limit its speed if no run without it was faster."""
    if (seconds := _hung(found)) >= HANGS:
        return f"It hung: when it was ended, all of its threads had waited for {format_seconds(seconds)} or longer."
    if found.limit.what is Limiter.GIL and found.elsewhere is not None and not _may_be_faster(found.elsewhere, found):
        return f"No run without the GIL was shorter, but {gil_waits(found.limit.share)}"
    return found.limit.sentence


def _hung(found: Diagnosis) -> float:
    """Return how long all threads of a killed program had waited for each other when it was ended; 0: they had not."""
    waits = [last.seconds for last in found.last_seen if last.kind in {SpanKind.PARK, SpanKind.WAIT, SpanKind.IDLE}]
    return min(waits) if waits and len(waits) == len(found.summary.threads) else 0.0


def _may_be_faster(there: WithoutGil, found: Diagnosis) -> bool:
    """Return True unless all runs there took as long or longer."""
    if there.ratio is None:
        return True
    return min(there.walls) < found.summary.wall and (_differ(there) or not took_as_long(there))


def _who(found: Diagnosis) -> Iterator[str]:
    """Yield who keeps others waiting, who waits, and the longest stall; of killed processes what they were doing."""
    counting = {found.limit.what, *found.limit.also}
    if (Limiter.GIL in counting or found.convoys) and found.holders:
        behind = (convoy.holder for convoy in found.convoys if convoy.holder)
        yield _holder_text(found, next(behind, found.holders[0]))
    if Limiter.PAUSES in counting and found.stoppers:
        worst = found.stoppers[0]
        yield (f"stopped by: {short_name(worst.thread)} at {where_text(worst.place)}, up to "
               f"{format_seconds(worst.longest)} at a time")
    if found.last_seen:
        yield from (f"when it was ended: {last_text(last)}" for last in found.last_seen[:MOST_LAST])
        return
    if found.convoys:
        yield _convoy_text(found.convoys)
    elif text := _waiting_text(found):
        yield f"waiting: {text}"
    if found.stall is not None:
        stall = found.stall
        times = f", {stall.times} times" if stall.times > 1 else ""
        yield (f"longest stall: {short_name(stall.thread)}, {format_seconds(stall.longest)}{times}, while "
               f"{short_name(stall.holder)} had the GIL at {where_text(stall.place)}")


def _holder_text(found: Diagnosis, worst: Holder) -> str:
    """Return who had the GIL at the line at which others waited most."""
    alike = [each for each in found.holders if (each.file, each.line) == (worst.file, worst.line)]
    inside = f", in {where_text(worst.inside)}" if worst.inside else ""
    return (f"held by: {names_text(each.thread for each in alike)} at {where_text(worst)}{inside}: "
            f"{percent(sum(each.share for each in alike))} of the waits")


def _convoy_text(convoys: Sequence[Convoy]) -> str:
    """Return the threads in a convoy, all in one text, with the waits of all of them."""
    return (f"convoy: {names_text((each.thread for each in convoys), ROOM_OF_VICTIMS)} got the GIL back only after a "
            f"switch interval ({format_seconds(convoys[0].interval)}), {sum(each.waits for each in convoys):,} times: "
            f"{format_seconds(sum(each.waited for each in convoys))}")


def _waiting_text(found: Diagnosis) -> str:
    """Return which threads wait for what limits the program, the longest wait first; "" if none do."""
    what, summary = found.limit.what, found.summary

    def waited(row: ThreadSummary) -> float:
        return row.waited if what is Limiter.GIL else row.parked + row.spun

    rows = sorted(summary.threads, key=lambda row: -waited(row))
    if what not in LIMITERS.values() or len(rows) < 2 or not waited(rows[0]):
        return ""
    rows = [row for row in rows if waited(row) >= LEAST * waited(rows[0])]
    several = summary.processes > 1
    names = names_text(f"{row.process} {row.name}" if several else row.name for row in rows)
    most = next((f", most at {where_text(place)}" for place in summary.places
                 if place.reason is WaitReason.GIL and what is Limiter.GIL), "")
    return f"{names}, {format_seconds(sum(map(waited, rows)))} in all{most}"


def last_text(last: LastActivity) -> str:
    """Return what a thread of a killed process did last."""
    at = f", at {place_text(last.place)}" if last.place else ""
    return f"{last.thread} {LAST[last.kind]}, for {format_seconds(last.seconds)} or longer{at}"


def _gain_text(there: WithoutGil, found: Diagnosis) -> str:
    if there.ratio is None or there.wall is None:
        return f"The gain on {there.build} is unknown: {there.refused}."
    here = format_seconds(found.summary.wall)
    build = there.build
    if not re.match(rf"{re.escape(found.version)}(?!\d)", there.version):     # a recording says 3.15.0 of 3.15.0rc1+
        build += f" ({there.version}, not {found.version})"
    if _differ(there):
        return (f"On {build}, without the GIL, it took {format_seconds(min(there.walls))} to "
                f"{format_seconds(max(there.walls))} in {len(there.walls)} runs, instead of {here}: runs differ too "
                "much for one number.")
    runs = f"{len(there.walls)} runs there" if len(there.walls) > 1 else "one run each"
    times = f"{format_seconds(there.wall)} instead of {here}"
    if took_as_long(there) and not there.busy:
        return (f"On {build}: {times} ({counted(len(there.walls), 'run')}): no gain. If the program runs for a fixed "
                "time, compare the work done instead.")
    words = (f"was {_times(there.ratio)} times as fast" if there.ratio > 1 else
             f"took {_times(1 / there.ratio)} times as long")
    doubt = " The machine was busy, so that says little: repeat it on a quiet one." if there.busy else ""
    return f"On {build}, without the GIL, it {words}: {times}, {runs}.{doubt}"


def _differ(there: WithoutGil) -> bool:
    """Return True if the runs there differ too much for one number."""
    return max(there.walls) > MOST_SPREAD * min(there.walls)


def _times(ratio: float) -> str:
    """Return a ratio of few runs with two digits."""
    return f"{ratio:.1f}" if ratio < WHOLE_RATIOS else f"{ratio:.0f}"


def _next_step(found: Diagnosis) -> str:
    """Return what to do about the limit, or about the line that keeps others from the GIL; "" if nothing is known."""
    limit, there, stall = found.limit, found.elsewhere, found.stall
    faster = there is not None and bool(there.walls) and max(there.walls) < found.summary.wall
    if there is not None and faster and not took_as_long(there) and not there.busy:
        return f"use {there.build}; `gilscope evaluate .` says what is in the way of that"
    if -found.exit in CRASHES:
        return ""
    if stall is not None and limit.what is not Limiter.UNKNOWN and _is_worth_a_step(stall, found):
        return f"make the call at {file_line(stall.place)} shorter, or run it in another process"
    if found.convoys:
        return "compute in another process than the I/O, or try `sys.setswitchinterval(0.0005)`"
    return _step_for_more_cores(found) if limit.what is Limiter.CORES else _step_against(limit.what, found)


def _step_for_more_cores(found: Diagnosis) -> str:
    """Return how the program gets a core for each thread, and what to do about its other waits."""
    others = [_step_against(each, found) for each in found.limit.also if each is not Limiter.GIL]
    if others:
        return f"{ADVICE[Limiter.CORES]}, and {others[0]}"
    compute = len(found.summary.threads) > 1 and (asleep_share(found.summary) or 0.0) < LIMITS
    return COMPUTING if compute else ADVICE[Limiter.CORES]


def _step_against(what: Limiter, found: Diagnosis) -> str:
    """Return what to do about one kind of waits; "" if nothing is known."""
    if what is Limiter.NOTHING:
        return _step_without_waits(found)
    if what is Limiter.PAUSES:
        return _step_without_pauses(found)
    if what is Limiter.LOCK and found.stuck >= HANGS:
        return DEADLOCK
    if what is Limiter.UNKNOWN and found.exit:     # it did not get to the end of its own processes
        return ""
    return ADVICE[what]


def _is_worth_a_step(stall: Stall, found: Diagnosis) -> bool:
    """Return True unless threads that compute in turn made others wait longer."""
    if Limiter.GIL in {found.limit.what, *found.limit.also} and found.holders:
        return stall.times * stall.longest >= MOSTLY * found.holders[0].seconds
    return True


def _step_without_pauses(found: Diagnosis) -> str:
    """Return how to avoid pauses; a recording does not say which of their causes it was."""
    at = f" at {file_line(found.stoppers[0].place)}" if found.stoppers else ""
    return f"stop all threads less often{at}: garbage collections, sys._current_frames() and changes of classes do that"


def _step_without_waits(found: Diagnosis) -> str:
    if len(found.summary.threads) <= found.summary.processes:
        return ONE_THREAD if not found.exit else ""
    return "" if found.gil_used else SHARING


def _doubt(found: Diagnosis) -> str:
    """Return the gravest reason to doubt the answer; "" if there is none."""
    summary = found.summary
    if found.limit.what is Limiter.UNKNOWN:
        return ""
    killed = summary.killed - (found.exit < 0)     # its own end is in the first line
    if killed > 0:
        return f"{counted(killed, 'process', 'processes')} left no end: waits count up to the last that is known"
    if lost := next(missing_texts(summary), ""):
        return lost
    if (found.queued_share or 0.0) > BUSY and len(summary.threads) > 1 and found.limit.what is not Limiter.CORES:
        return (f"the machine was busy: threads had no core {percent(found.queued_share or 0.0)} of the time "
                "they wanted one; repeat it")
    return ""


def missing_texts(summary: RecordingSummary) -> Iterator[str]:
    """Yield what the recordings lack, and why."""
    why = "too many, or the temporary folder's disk (TMPDIR) is full"
    if summary.threads_lost:
        yield f"{summary.threads_lost} threads are missing: {why}"
    if summary.sites_lost:
        yield f"{summary.sites_lost} waits lack their place: {why}"
    if not summary.sites_known:
        yield "places are missing: the frames of this version of Python are not known"


def names_text(names: Iterable[str], room: int = ROOM) -> str:
    """Return names of threads, numbered ones as a range: "main, sender-0 to 7"; those without room are counted."""
    groups: dict[tuple[str, str], list[int]] = {}
    for name in dict.fromkeys(names):
        found = _NUMBERED.fullmatch(name)
        key = (found[1] or "", found[3] or "") if found else (name, "")
        groups.setdefault(key, []).extend([int(found[2])] if found else [])
    parts = [part for (begin, end), numbers in groups.items() for part in _numbered(begin, sorted(numbers), end)]
    shown, length = 0, 0
    while shown < len(parts) and (not shown or length + len(parts[shown][0]) <= room):
        length += len(parts[shown][0]) + 2
        shown += 1
    left_out = sum(count for _, count in parts[shown:])
    return ", ".join(text for text, _ in parts[:shown]) + (f" and {left_out} more" if left_out else "")


def _numbered(begin: str, numbers: Sequence[int], end: str) -> Iterator[tuple[str, int]]:
    """Yield the names, three and more in succession as one text, each with how many threads it names."""
    if not numbers:
        yield short_name(begin), 1
    while numbers:
        count = next((i for i, number in enumerate(numbers) if number != numbers[0] + i), len(numbers))
        count = count if count > 2 else 1
        range_ = f"{numbers[0]} to {numbers[count - 1]}" if count > 1 else f"{numbers[0]}"
        yield short_name(f"{begin}{range_}{end}"), count
        numbers = numbers[count:]


def where_text(place: CodeLine | Holder | WaitPlace) -> str:
    """Return file, line and function; a function that does not fit is shortened to its last name, or left out."""
    at = file_line(place)
    names = (place.function, place.function.rpartition(".")[2])
    return next((f"{at} {name}" for name in names if len(at) + len(name) < LONGEST_PLACE), at)


def short_name(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name shortened in its middle: the workers of a pool differ at the end."""
    half = longest // 2 - 2
    return name if len(name) <= longest else f"{name[:half]}...{name[-half:]}"
