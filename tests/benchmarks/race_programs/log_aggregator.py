"""Log lines from several "files" are parsed in threads and aggregated in one place."""

import re
import threading
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed

LINE = re.compile(
    r"(?P<host>\S+) \[(?P<minute>\d+)\] (?P<method>[A-Z]+) (?P<path>\S+) (?P<status>\d{3}) (?P<bytes>\d+)"
)
METHODS = ("GET", "POST", "PUT")
PATHS = ("/", "/index", "/login", "/api/items", "/api/users", "/static/app.js")


def make_lines(number, count):
    state = number * 7919 + 1
    for _ in range(count):
        state = (state * 1_103_515_245 + 12_345) % 2**31
        yield (
            f"10.0.{number}.{state % 50} [{state // 64 % 60}] {METHODS[state % 3]} {PATHS[state // 3 % 6]} "
            f"{(200, 200, 200, 304, 404, 500)[state // 11 % 6]} {state % 5000}"
        )


class Minute:
    """What happened within one minute."""

    def __init__(self):
        self.requests = 0
        self.errors = 0
        self.bytes = 0

    def add(self, status, size):
        self.requests += 1
        self.bytes += size
        if status >= 500:
            self.errors += 1


class Aggregate:
    def __init__(self):
        self.lock = threading.Lock()
        self.minutes = defaultdict(Minute)
        self.paths = Counter()
        self.hosts = set()

    def merge(self, minutes, paths, hosts):
        with self.lock:
            for number, minute in minutes.items():
                target = self.minutes[number]
                target.requests += minute.requests
                target.errors += minute.errors
                target.bytes += minute.bytes
            self.paths.update(paths)
            self.hosts |= hosts


def parse(number, lines, aggregate):
    minutes, paths, hosts = defaultdict(Minute), Counter(), set()
    bad = 0
    for line in lines:
        match = LINE.match(line)
        if match is None:
            bad += 1
            continue
        minutes[int(match["minute"])].add(int(match["status"]), int(match["bytes"]))
        paths[match["path"]] += 1
        hosts.add(match["host"])
    aggregate.merge(minutes, paths, hosts)
    return number, bad


def report(aggregate):
    total = 0
    for number, minute in sorted(aggregate.minutes.items()):
        total = (total * 31 + number * minute.requests + minute.bytes + minute.errors) % 1_000_000_007
    return total, aggregate.paths.most_common(2), len(aggregate.hosts)


def main():
    aggregate = Aggregate()
    with ThreadPoolExecutor(max_workers=4, thread_name_prefix="parser") as executor:
        futures = [executor.submit(parse, number, make_lines(number, 3_000), aggregate) for number in range(14)]
        bad = sum(future.result()[1] for future in as_completed(futures))
    print("checksum", *report(aggregate), bad)


if __name__ == "__main__":
    main()
