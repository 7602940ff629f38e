import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gilscope.toolkit.stats.planning.allocation import Spreads, spreads, values_per_process


def processes(within, between, *, count=200, values=8, slow=0.0):
    draw = random.Random(1)
    return [
        [level + draw.gauss(0, within) for _ in range(values)]
        for level in (draw.gauss(0, between) + (0.3 if draw.random() < slow else 0.0) for _ in range(count))
    ]


@pytest.mark.parametrize(("within", "between"), [(0.01, 0.03), (0.03, 0.01), (0.02, 0.0)])
def test_spreads_are_found(within, between):
    found = spreads(processes(within, between))
    assert found.within == pytest.approx(within, rel=0.1)
    assert found.between == pytest.approx(between, abs=0.005)


def test_a_rare_slow_process_is_not_everybodys_spread():
    assert spreads(processes(0.01, 0.01, slow=0.08)).between < 0.02


def test_one_process_has_no_spread_between():
    assert spreads([[0.1, 0.2, 0.3]]).between == 0.0


@pytest.mark.parametrize("values", [[], [[0.1]], [[0.1], [0.2]]])
def test_spread_within_needs_two_values(values):
    with pytest.raises(ValueError, match="two values"):
        spreads(values)


@pytest.mark.parametrize(("within", "between", "count"), [
    # a process costs 0.4 s, a value 0.025 s: root of 16 is 4 times within / between
    (0.02, 0.02, 4), (0.02, 0.01, 8), (0.01, 0.17, 2), (0.02, 0.0, 20), (0.0, 0.0, 2),
])
def test_what_processes_draw_once_asks_for_processes(within, between, count):
    found = Spreads(within=within, between=between)
    assert values_per_process(found, process_seconds=0.4, value_seconds=0.025) == count


@given(within=st.floats(0.001, 0.2), between=st.floats(0.001, 0.2), cost=st.floats(0.1, 50))
def test_no_other_number_of_values_is_better(within, between, cost):
    chosen = values_per_process(Spreads(within=within, between=between), process_seconds=cost, value_seconds=1.0,
                                fewest=1, most=1000)

    def variance(count):   # of a second's worth of processes
        return (between**2 + within**2 / count) * (cost + count)

    best = min(variance(count) for count in range(1, 1001))
    assert variance(chosen) <= 1.15 * best   # whole numbers: rounding up costs little
