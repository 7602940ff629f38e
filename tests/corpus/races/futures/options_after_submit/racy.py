# EXPECT: unsynchronised read/write | *options['level'] | 15, 10
"""Options are changed after the task that reads them was submitted."""

from concurrent.futures import ThreadPoolExecutor

options = {"level": 1}


def compress(data):
    return data * options["level"]


with ThreadPoolExecutor(max_workers=1) as executor:
    future = executor.submit(compress, "ab")
    options["level"] = 2
    print(future.result() in {"ab", "abab"})
