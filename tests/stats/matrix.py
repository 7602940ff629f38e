"""Whole runs with a known truth: groups of arms that share a machine, each process with an error of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import exp, log1p
from typing import TYPE_CHECKING

from gilscope.toolkit.stats.best import best_of
from gilscope.toolkit.stats.estimators import HUBER
from gilscope.toolkit.stats.log_times import RoundLogs, process_levels
from gilscope.toolkit.stats.noise import ArmSpread, Noise, PairNoise
from gilscope.toolkit.stats.pair_kinds import ArmClass
from gilscope.toolkit.stats.ratios import compare
from gilscope.toolkit.stats.sample import CONFIDENCE

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Mapping, Sequence

GROUPS = {8: (2, 4), 24: (4, 6), 84: (4, 21)}   # cells: workloads, arms of each


def known_noise(spread: float = 0.01, prior: float = 1e9, widening: float = 1.0) -> Noise:
    """Return the noise of a group whose errors are known; with the default prior, quantiles are the normal's."""
    return Noise(
        usual=PairNoise(spread=spread, cutoff=HUBER * 2**0.5 * spread, prior=prior, widening=widening),
        arm=ArmSpread(spread=spread, scale=spread))


def fastest(
    logs: RoundLogs[int], noise: Noise, arms: Sequence[int], confidence: float = CONFIDENCE,
) -> tuple[int, ...]:
    """Return the set of the fastest of these arms, all of which share their rounds."""
    return best_of(arms, partial(compare, logs, noise), confidence)


def sizes(draw: random.Random, kind: str, arms: int) -> list[float]:
    """How large the errors of each arm are, against the group's."""
    return [exp(draw.gauss(0, 0.3)) if kind.startswith("sizes") else 1.0 for _ in range(arms)]


def process_error(draw: random.Random, kind: str) -> float:
    """What one process is off by for its whole life, in logs; its median may differ from 0."""
    return ERRORS[kind](draw)


def slow(draw: random.Random, share: float) -> float:
    """A share of the processes is 10 to 30 % slow."""
    return draw.gauss(0, 0.015) + (log1p(draw.uniform(0.1, 0.3)) if draw.random() < share else 0.0)


def levels(draw: random.Random, spread: float, share: float, step: float) -> float:
    """A share of the processes is a fixed step slower."""
    return draw.gauss(0, spread) + (step if draw.random() < share else 0.0)


ERRORS = {
    "normal": lambda draw: draw.gauss(0, 0.015),
    "slow": lambda draw: slow(draw, 0.08),
    "slower": lambda draw: slow(draw, 0.2),                    # of pairs 36 %: more than any estimate stands
    "bimodal": lambda draw: levels(draw, 0.005, 0.5, 0.08),    # as with cache colouring
    "levels": lambda draw: levels(draw, 0.01, 0.25, 0.17),     # a hash seed
    "student": lambda draw: draw.gauss(0, 0.012) / (draw.gammavariate(1.5, 2) / 3) ** 0.5,   # 3 degrees of freedom
    "skewed": lambda draw: draw.expovariate(50),
    "sizes": lambda draw: draw.gauss(0, 0.015),
    "sizes and slow": lambda draw: slow(draw, 0.08),
}
KINDS = tuple(ERRORS)


def drift(draw: random.Random, rounds: int, step: float = 0.05) -> list[float]:
    """A machine that wanders from round to round, in logs, shared by all arms."""
    return [*accumulate(draw.gauss(0, step) for _ in range(rounds))]


def correlated(values: Sequence[float], correlation: float) -> list[float]:
    """A first-order autoregression with these innovations, of the same variance from the first on."""
    weight = (1 - correlation**2) ** 0.5
    return [*accumulate(values, lambda before, new: correlation * before + weight * new)]


def group(draw: random.Random, kind: str, rounds: int, effects: list[float]) -> RoundLogs[int]:
    """One workload: arm k is `effects[k]` faster than arm 0, in logs."""
    machine = drift(draw, rounds)
    scales = sizes(draw, kind, len(effects))
    return RoundLogs(levels={
        arm: {r: shared + scale * process_error(draw, kind) - effect for r, shared in enumerate(machine)}
        for arm, (effect, scale) in enumerate(zip(effects, scales, strict=True))
    })


def two_runs(
    draw: random.Random, kind: str, rounds: int, effects: list[float], step: float,
) -> list[RoundLogs[int]]:
    """One workload in two runs; in the second, arm k is `effects[k]` faster.  Rounds differ by `step` of their own."""
    scales = sizes(draw, kind, len(effects))
    runs = []
    for faster in ([0.0] * len(effects), effects):
        machine = [draw.gauss(0, step) for _ in range(rounds)]
        runs.append(RoundLogs(levels={
            arm: {r: shared + scale * process_error(draw, kind) - effect for r, shared in enumerate(machine)}
            for arm, (effect, scale) in enumerate(zip(faster, scales, strict=True))
        }))
    return runs


def passes(
    draw: random.Random, rounds: int, effects: list[float], *, count: int = 8, kind: str = "normal",
) -> dict[int, dict[int, list[float]]]:
    """The same as seconds of passes in turn: neighbours from pass to pass, and a burst in one value of ten."""
    found: dict[int, dict[int, list[float]]] = {}
    for r, shared in enumerate(drift(draw, rounds)):
        neighbours = drift(draw, count, 0.08)
        found[r] = {
            arm: [
                exp(shared + near + own - effect + draw.gauss(0, 0.01) + (draw.uniform(0, 0.5) if draw.random() < 0.1
                                                                          else 0.0))
                for near in neighbours
            ]
            for arm, effect in enumerate(effects) for own in (process_error(draw, kind),)
        }
    return found


def of_passes(rounds: Mapping[int, Mapping[int, Sequence[float]]]) -> RoundLogs[int]:
    """Return the logs of arms that took their values in turn, from their seconds by round."""
    levels: dict[int, dict[int, float]] = {}
    for number, seconds in rounds.items():
        for arm, level in process_levels(seconds).items():
            levels.setdefault(arm, {})[number] = level
    return RoundLogs(levels=levels)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """How the errors of a table differ from independent ones of one size and shape."""

    error: str = "normal"        # the shape of a process's error, of `ERRORS`
    size: float = 1.0            # factor on all errors
    wild: float = 1.0            # factor on the errors of one arm of each build that equals the baseline
    anywhere: bool = False       # it is any arm, another one in each workload
    serial: float = 1.0          # factor on the errors of the serial cell of the first build and of its A/A arm
    correlation: float = 0.0     # of an arm's errors from one round to the next
    interaction: float = 0.0     # in logs: what a round does to all arms with several workers, and to no serial one
    alone: bool = False          # it does so in the first workload only
    lasting: float = 0.0         # correlation of that from one round to the next
    build: float = 0.0           # in logs: what a round does to all arms of the second build
    slow: float = 0.0            # of three arms: the share of processes that are 28 % slow
    drift: float = 0.05          # in logs: a step of the machine from round to round


DISTURBANCES = {
    "normal": Disturbance(),
    "large": Disturbance(size=7 / 3),
    "drift": Disturbance(drift=0.3),
    "student": Disturbance("student"),
    "bimodal": Disturbance("bimodal"),
    "wild": Disturbance(wild=4.0),
    "wild anywhere": Disturbance(wild=4.0, anywhere=True),
    "correlated": Disturbance(correlation=0.7),
    "weakly correlated": Disturbance(correlation=0.3),
    "interaction 2 %": Disturbance(interaction=0.02),
    "interaction 4 %": Disturbance(interaction=0.04),
    "one workload 4 %": Disturbance(interaction=0.04, alone=True),
    "build 2 %": Disturbance(build=0.02),
    "lasting interaction": Disturbance(interaction=0.03, lasting=0.8),
    "noisy serial": Disturbance(serial=4.0),
    "slow processes": Disturbance(slow=0.25),
}
FASTER = (0.0, 0.0, 0.0, log1p(0.03), log1p(0.10), 0.60, 0.605)   # log ratios of a build's arms to the baseline, arm 0
STRIDE = len(FASTER) + 2                        # arms of a build, with an A/A arm of the first and of the last
BUILDS = (0, 1)
SLOWER_BUILD = log1p(0.1)                       # the second build's serial arm takes so much longer
EFFECTS = {STRIDE * build + arm: effect for build in BUILDS
           for arm, effect in enumerate((*FASTER, FASTER[0], FASTER[-1]))}
PAIRS = [(STRIDE * build, STRIDE * build + arm) for build in BUILDS for arm in range(1, len(FASTER))]
AA_PAIRS = [(STRIDE * build + first, STRIDE * build + second) for build in BUILDS for first, second in ((0, 7), (6, 8))]
SERIAL_ARMS = (0, STRIDE)
TREATMENTS = {arm: (arm // STRIDE, {7: 0, 8: 6}.get(arm % STRIDE, arm % STRIDE)) for arm in EFFECTS}
CLASSES = {arm: ArmClass(workers="one" if arm % STRIDE in {0, 7} else "several", build=arm // STRIDE)
           for arm in EFFECTS}


@dataclass(frozen=True, slots=True)
class DisturbedGroup:
    """The arms of one workload on two builds, with the arms that the noise disturbs unlike the others."""

    logs: RoundLogs[int]
    disturbed: frozenset[int]


def disturbed_group(draw: random.Random, kind: Disturbance, rounds: int, place: int = 0) -> DisturbedGroup:
    """One workload on two builds, the one at `place` in its table."""
    candidates = [STRIDE * build + arm for build in BUILDS for arm in range(1, len(FASTER))]
    wild = {STRIDE * build + (draw.randrange(1, len(FASTER)) if kind.anywhere else 1)
            for build in BUILDS if kind.wild > 1}
    slow_arms = {*draw.sample(candidates, 3)} if kind.slow else set()
    machine = drift(draw, rounds, kind.drift)
    noisy = {arm for arm, (build, model) in TREATMENTS.items() if kind.serial > 1 and build == model == 0}
    disturbs = kind.interaction if not kind.alone or place == 0 else 0.0
    interaction = correlated([draw.gauss(0, disturbs) for _ in range(rounds)], kind.lasting)
    favoured = [draw.gauss(0, kind.build) for _ in range(rounds)] if kind.build else [0.0] * rounds
    levels: dict[int, dict[int, float]] = {}
    for arm, effect in EFFECTS.items():
        size = kind.size * (kind.wild if arm in wild else 1.0) * (kind.serial if arm in noisy else 1.0)
        errors = correlated([process_error(draw, kind.error) for _ in range(rounds)], kind.correlation)
        slow_rounds = {r for r in range(rounds) if arm in slow_arms and draw.random() < kind.slow}
        levels[arm] = {
            r: machine[r] + size * errors[r] + SLOWER_BUILD * (arm >= STRIDE) - effect
            + (interaction[r] if CLASSES[arm].workers == "several" else 0.0)
            + (favoured[r] if arm >= STRIDE else 0.0)
            + (log1p(0.28) if r in slow_rounds else 0.0) for r in range(rounds)
        }
    several = {arm for arm in EFFECTS if kind.alone and disturbs and CLASSES[arm].workers == "several"}
    disturbed = frozenset(wild | slow_arms | noisy | several)
    return DisturbedGroup(logs=RoundLogs(levels=levels), disturbed=disturbed)


SESSION_KINDS = {   # standard deviations, in logs: the shift of all arms with several workers, and of each arm alone
    "nothing": (0.0, 0.0),
    "joint 2 %": (0.02, 0.0),
    "own 1 %": (0.0, 0.01),
    "joint 2 % + own 1 %": (0.02, 0.01),
}


def session_levels(
    draw: random.Random, kind: str, workloads: Sequence[Mapping[int, float]], several: Collection[int], *,
    sessions: int, rounds: int, spread: float = 0.015,
) -> list[list[dict[int, dict[int, float]]]]:
    """Workloads in several sessions: arm k is `effects[k]` faster, and a session shifts arms as `kind` says.

    Args:
        draw: For all random numbers.
        kind: One of SESSION_KINDS.
        workloads: The effects of each workload's arms, in logs.
        several: The arms with several workers, which a session shifts together, in all workloads.
        sessions: The number of sessions.
        rounds: In each session.
        spread: Of a process, in logs.

    Returns:
        By workload and session: the levels by arm and round.
    """
    joint, own = SESSION_KINDS[kind]
    found: list[list[dict[int, dict[int, float]]]] = [[] for _ in workloads]
    for session in range(sessions):
        shift = draw.gauss(0, joint)
        for place, effects in enumerate(workloads):
            machine = drift(draw, rounds)
            levels = {}
            for arm, effect in effects.items():
                level = draw.gauss(0, own) + (shift if arm in several else 0.0) - effect
                levels[arm] = {session * rounds + r: level + shared + draw.gauss(0, spread)
                               for r, shared in enumerate(machine)}
            found[place].append(levels)
    return found
