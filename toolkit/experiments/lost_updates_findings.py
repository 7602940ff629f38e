"""What became of the advice of 2021, in sentences that follow the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.experiments.lost_updates_shares import (
    CHECKED,
    DEFAULT,
    LOCKED,
    SHORTEST,
    WORDS,
    Row,
    checked_rows,
    find_cell,
    rows_of,
    share_of,
    share_text,
    verdict_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.experiments.arms import Arm
    from toolkit.experiments.results import Results
    from toolkit.stats.sample import Summary


def findings(results: Results, arm: Arm) -> Iterator[str]:
    """Yield what can be said of one arm: nothing of what was not measured."""
    bare, called = (share_of(results, arm, "long", Row(variant, CHECKED, DEFAULT)) for variant in ("bare", "called"))
    if bare is None or called is None:
        return
    if arm.free_threaded:
        yield _without_gil(arm, bare)
    else:
        yield _with_gil(results, arm, bare, called)
    yield from _on_interval(results, arm, called)
    yield from _on_article(results, arm)


def _without_gil(arm: Arm, bare: Summary) -> str:
    text = f"{arm.title}: {CHECKED} threads that only do total += 1 lose {_lost_text(bare)} of the updates"
    if not bare.hi:
        return f"{text} here, although nothing keeps them from running at the same time."
    return f"{text}: without a GIL they run at the same time, and any write may cover another one."


def _with_gil(results: Results, arm: Arm, bare: Summary, called: Summary) -> str:
    if bare.hi:
        return f"{arm.title}: a bare total += 1 loses {_lost_text(bare)} of the updates, as it did in 2021."
    made = results.metrics(find_cell(results, arm, "long", Row("bare", CHECKED, DEFAULT)), "expected")
    text = f"{arm.title}: a bare total += 1 lost none of {sum(made.values()):,.0f} updates"
    if not called.hi:
        return f"{text}; here, one with a call in it lost none either."
    return (
        f"{text}, but total += one() lost {_lost_text(called)}. Since 3.10 a thread gives the GIL away only at calls "
        "and at the end of a loop's turn, no longer between any two instructions; the first has neither between its "
        "read and its write. That is how CPython happens to be made, not a promise: the claim of 2021 holds for the "
        "language."
    )


def _on_interval(results: Results, arm: Arm, usual: Summary) -> Iterator[str]:
    """Compare the default interval with the shortest, for additions that call something."""
    short = share_of(results, arm, "long", Row("called", CHECKED, SHORTEST))
    if short is None or min(short.count, usual.count) < 2 or not (usual.hi and short.hi):  # noqa: PLR2004 - a range
        return
    text = (f"{arm.title}: total += one() loses {_lost_text(usual)} at 5 ms and {_lost_text(short)} at 1 us")
    if max(usual.lo, short.lo) > min(usual.hi, short.hi):
        yield f"{text}."
    elif arm.free_threaded:
        yield f"{text}; no difference is seen, as there is no GIL to switch."
    else:
        yield (f"{text}; no difference is seen: a thread that is stopped between its read and its write covers all "
               "that the others did meanwhile, whether that was little or much. The interval matters only to loops "
               "that are shorter than it.")


def _on_article(results: Results, arm: Arm) -> Iterator[str]:
    """Say what the article's program loses."""
    rows = [row for row in rows_of(results, "short") if row.interval == SHORTEST and row.variant == "bare"]
    for row in rows[:1]:
        share = share_of(results, arm, "short", row)
        if share is not None:
            end = "" if share.hi else ": a thread has added its hundred before the next one has started"
            yield (f"{arm.title}: the article's program, 100 times sum += 1 in each of {row.threads} threads at 1 us, "
                   f"loses {_lost_text(share)} of its updates{end}.")


def _lost_text(share: Summary) -> str:
    return share_text(share) if share.hi else "none"


def on_checker(results: Results, arms: Sequence[Arm]) -> Iterator[str]:
    """Yield whether the race checker told the racy variants from the locked one, on every arm."""
    told: dict[str, list[Summary | None]] = {"race": [], "clean": []}
    wrong = []
    for arm in arms:
        for row in checked_rows(results):
            cell, wanted = find_cell(results, arm, "long", row), "clean" if row.variant == LOCKED else "race"
            verdict = verdict_of(results, cell)
            if verdict == wanted:
                told[wanted].append(results.metric(cell, "share"))
            elif verdict is not None:
                wrong.append(f"{arm.title}: of {WORDS[row.variant]} the race checker said {verdict}, not {wanted}.")
    yield from wrong
    if wrong or not all(told.values()):
        return
    harmless = sum(share is not None and not share.hi for share in told["race"])
    also = f", also in the {harmless} where nothing was lost" if harmless else ""
    yield (f"The race checker reports the race in all {len(told['race'])} programs without a lock{also}, and none in "
           f"the {len(told['clean'])} with one: it judges whether accesses are ordered, not luck.")
