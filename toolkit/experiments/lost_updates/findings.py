"""What became of the advice of 2021, in sentences that follow the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.lost_updates.shares import (
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
from gilscope.toolkit.report.wording import list_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.experiments.arms import Arm
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.stats.sample import Summary


def on_shares(results: Results, arms: Sequence[Arm]) -> Iterator[str]:
    """Yield what long loops lose, with and without a call between read and write."""
    told: list[tuple[Arm, Summary, Summary]] = []
    for arm in arms:
        rows = (Row(variant, CHECKED, DEFAULT) for variant in ("bare", "called"))
        bare, called = (share_of(results, arm, "long", row) for row in rows)
        if bare is None or called is None:
            continue
        told.append((arm, bare, called))
        yield (f"{arm.title}: {CHECKED} threads that do total += 1 lose {share_text(bare)} of {_made(results, arm)} "
               f"updates at 5 ms; with total += one() they lose {share_text(called)}{_at_shortest(results, arm)}.")
    yield from _why_without_gil([bare for arm, bare, _ in told if arm.free_threaded])
    yield from _why_with_gil([(bare, called) for arm, bare, called in told if not arm.free_threaded])
    yield from _why_at_any_interval(results, [(arm, called) for arm, _, called in told if not arm.free_threaded])


def _made(results: Results, arm: Arm) -> str:
    made = results.metrics(find_cell(results, arm, "long", Row("bare", CHECKED, DEFAULT)), "expected")
    return f"{sum(made.values()):,.0f}"


def _at_shortest(results: Results, arm: Arm) -> str:
    share = share_of(results, arm, "long", Row("called", CHECKED, SHORTEST))
    return "" if share is None else f", at 1 µs {share_text(share)}"


def _why_without_gil(bare: Sequence[Summary]) -> Iterator[str]:
    if bare and all(each.hi for each in bare):
        yield "Without the GIL the threads run at the same time, and any write may cover another one."


def _why_with_gil(told: Sequence[tuple[Summary, Summary]]) -> Iterator[str]:
    if not told:
        return
    if any(bare.hi for bare, _ in told):
        yield "With the GIL a bare += loses updates, as it did in 2021."
    elif all(called.hi for _, called in told):
        yield ("With the GIL a bare += in a loop no longer loses anything: since 3.10 a thread gives the GIL away only "
               "at calls and at the end of a loop's turn, not between any two instructions, and there is neither "
               "between its read and its write. That is how CPython happens to be made, not a promise of the language.")


def _why_at_any_interval(results: Results, told: Sequence[tuple[Arm, Summary]]) -> Iterator[str]:
    """Say that the interval makes no difference, if it makes none: the ranges overlap on every build."""
    pairs = [(usual, share_of(results, arm, "long", Row("called", CHECKED, SHORTEST))) for arm, usual in told]
    known = [(usual, short) for usual, short in pairs if short is not None and min(usual.count, short.count) > 1]
    if not known or len(known) < len(told) or not all(usual.hi and short.hi for usual, short in known):
        return
    if all(usual.lo <= short.hi and short.lo <= usual.hi for usual, short in known):
        yield ("No difference is seen between the intervals: a thread that is stopped between its read and its write "
               "covers all that the others did meanwhile, be it little or much. The interval of 1e-6 that 2021 "
               "advised matters to loops alone that are shorter than the usual one.")


def on_article(results: Results, arms: Sequence[Arm]) -> Iterator[str]:
    """Yield what the article's program loses."""
    rows = [row for row in rows_of(results, "short") if row.interval == SHORTEST and row.variant == "bare"]
    for row in rows[:1]:
        shares = {arm.title: share_of(results, arm, "short", row) for arm in arms}
        known = {title: share for title, share in shares.items() if share is not None}
        if not known:
            return
        text = f"The article's program, 100 times sum += 1 in each of {row.threads} threads at 1 µs, loses"
        if not any(share.hi for share in known.values()):
            yield f"{text} nothing on {list_text(known)}: there it does not show its race any more."
        else:
            parts = (f"{share_text(share)} on {title}" for title, share in known.items())
            yield f"{text} {list_text(parts)}."


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
