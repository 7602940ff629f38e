from math import inf

import pytest

from gilscope.toolkit.stats.verdict import Comparison


def comparison(ratio, lo, hi, *, floor=0.013, rounds=20, between=None):
    return Comparison(
        ratio=ratio, lo=lo, hi=hi, floor=floor, rounds=rounds, verdict_interval=between)


@pytest.mark.parametrize(("result", "verdict"), [
    (comparison(1.10, 1.05, 1.15), "faster"),
    (comparison(0.90, 0.85, 0.95), "slower"),
    (comparison(1.10, 0.99, 1.21), None),                    # the interval holds 1
    (comparison(1.012, 1.01, 1.02, between=(0.999, 1.025)), None),   # significant alone, not among others
    (comparison(0.99, 0.98, 0.995, between=(0.977, 1.003)), None),   # likewise on the other side
    (comparison(1.02, 0.0, inf), None),                   # the noise is not known
    (comparison(3.40, 3.32, 3.49, floor=None), None),     # no floor, no verdict
])
def test_a_difference_excludes_one(result, verdict):
    assert (result.verdict() if result.differs else None) == verdict


def test_the_other_way_round_every_end_is_inverted():
    seen = Comparison(ratio=0.5, lo=0.4, hi=0.8, floor=0.01, rounds=6, verdict_interval=(0.25, 0.0))
    turned = seen.inverted()
    assert (turned.ratio, turned.lo, turned.hi, turned.verdict_interval) == (2.0, 1.25, 2.5, (inf, 4.0))
