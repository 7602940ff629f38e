"""Pure-Python tasks: none of them releases the GIL voluntarily.

Like every task module, this one imports nothing at its top, since each worker would pay for it.  Tasks build their own
data, because without a GIL the reference count of an object that all threads use slows them down.
"""


def noop(payload: object) -> object:
    """Return the payload: all that is measured is the cost of dispatching a task."""
    return payload


def countdown(n: int) -> int:
    """Count down to zero and return where it stopped.

    Source: Beazley (2010), "Understanding the Python GIL".
    """
    while n > 0:
        n -= 1
    return n


def primes(bounds: tuple[int, int]) -> int:
    """Count the primes from `bounds[0]` up to, but not including, `bounds[1]`, by trial division."""
    start, stop = bounds
    found = 0
    for number in range(max(start, 2), stop):
        if number % 2 == 0:
            found += number == 2  # the one even prime, not a setting
            continue
        divisor = 3
        while divisor * divisor <= number and number % divisor:
            divisor += 2
        found += divisor * divisor > number
    return found


def mandelbrot(points: int) -> int:
    """Count those of `points` places in the complex plane that are still bounded after 100 steps.

    The places lie evenly in -2 <= x < 0.5, 0 <= y < 1.25, in an order that makes twice the points twice the
    work.

    Source: Roberts (2018), "The Unreasonable Effectiveness of Quasirandom Sequences", the R2 sequence.
    """
    bounded = 0
    for index in range(1, points + 1):
        place_x = -2.0 + 2.5 * (index * 0.7548776662466927 % 1.0)
        place_y = 1.25 * (index * 0.5698402909980532 % 1.0)
        x = y = 0.0
        for _ in range(100):
            x, y = x * x - y * y + place_x, 2.0 * x * y + place_y
            if x * x + y * y > 4.0:  # beyond radius 2 it diverges
                break
        else:
            bounded += 1
    return bounded


def nbody(steps: int) -> float:
    """Return the energy of the Sun and its four giant planets after `steps` of 0.01 days.

    Source: The Computer Language Benchmarks Game, n-body.
    """
    bodies = _planets()
    pairs = [(one, other) for index, one in enumerate(bodies) for other in bodies[index + 1:]]
    for _ in range(steps):
        for one, other in pairs:
            dx, dy, dz = one[0] - other[0], one[1] - other[1], one[2] - other[2]
            pull = 0.01 * (dx * dx + dy * dy + dz * dz) ** -1.5
            by_other, by_one = other[6] * pull, one[6] * pull
            one[3] -= dx * by_other
            one[4] -= dy * by_other
            one[5] -= dz * by_other
            other[3] += dx * by_one
            other[4] += dy * by_one
            other[5] += dz * by_one
        for body in bodies:
            body[0] += 0.01 * body[3]
            body[1] += 0.01 * body[4]
            body[2] += 0.01 * body[5]
    return _energy(bodies, pairs)


def _planets() -> list[list[float]]:
    """Return x, y, z, velocity in x, y, z and mass of each body; the momentum of all is zero."""
    year, sun = 365.24, 39.47841760435743  # days; 4 pi^2, the unit of mass
    planets = [
        [4.84143144246472090, -1.16032004402742839, -0.103622044471123109,
         0.00166007664274403694, 0.00769901118419740425, -0.0000690460016972063023, 0.000954791938424326609],
        [8.34336671824457987, 4.12479856412430479, -0.403523417114321381,
         -0.00276742510726411128, 0.00499852801234917238, 0.0000230417297573763929, 0.000285885980666130812],
        [12.8943695621391310, -15.1111514016986312, -0.223307578892655734,
         0.00296460137564761618, 0.00237847173959480950, -0.0000296589568540237556, 0.0000436624404335156298],
        [15.3796971148509165, -25.9193146099879641, 0.179258772950371181,
         0.00268067772490389322, 0.00162824170038242295, -0.0000951592254519715870, 0.0000515138902046611451],
    ]
    bodies = [[*body[:3], *(part * year for part in body[3:6]), body[6] * sun] for body in planets]
    drift = [-sum(body[axis] * body[6] for body in bodies) / sun for axis in (3, 4, 5)]
    return [[0.0, 0.0, 0.0, *drift, sun], *bodies]


def _energy(bodies: list[list[float]], pairs: list[tuple[list[float], list[float]]]) -> float:
    moving = sum(0.5 * body[6] * (body[3] ** 2 + body[4] ** 2 + body[5] ** 2) for body in bodies)
    bound = sum(
        one[6] * other[6] / ((one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2 + (one[2] - other[2]) ** 2) ** 0.5
        for one, other in pairs
    )
    return float(moving - bound)  # a power has no static type: it may be complex


def json_roundtrip(rounds: int) -> tuple[int, float]:
    """Write and read a small document `rounds` times.

    Returns:
        The document's own count of rounds, and the sum of its rows' prices.
    """
    import json

    text = json.dumps({
        "round": 0, "name": "order", "paid": True, "note": None,
        "rows": [{"id": row, "price": row * 1.5, "tags": ["a", "bc"]} for row in range(8)],
    })
    for _ in range(rounds):
        document = json.loads(text)
        document["round"] += 1
        text = json.dumps(document)
    document = json.loads(text)
    return document["round"], sum(row["price"] for row in document["rows"])


def regex(rounds: int) -> int:
    """Search 16 log lines `rounds` times and return the sum of the response times found."""
    import re

    lines = "\n".join(
        f'10.0.0.{line} - [21/Nov/2026:10:00:{line:02}] "GET /item/{line * 37} HTTP/1.1" '
        f"{200 if line % 4 else 500} {line}ms"
        for line in range(16)
    )
    served = re.compile(r'"GET (/\w+/\d+) HTTP/1\.[01]" 2\d\d (\d+)ms')
    total = 0
    for _ in range(rounds):
        for match in served.finditer(lines):
            total += int(match[2])
    return total


def sort(blocks: int) -> int:
    """Sort `blocks` shuffled tables of 127 rows with a key function; return the sum of rank times key over all."""
    total = 0
    for block in range(blocks):
        step = block % 125 + 2
        # 127 is prime, so stepping through it meets every key once.
        table = [(row * step % 127, row) for row in range(127)]
        table.sort(key=lambda row: row[0])
        total += sum(rank * row[0] for rank, row in enumerate(table))
    return total
