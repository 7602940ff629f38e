# EXPECT: clean
"""Options are changed after the task that reads them was submitted."""

from concurrent.futures import ThreadPoolExecutor

options = {"level": 1}


def compress(data):
    return data * options["level"]


with ThreadPoolExecutor(max_workers=1) as executor:
    options["level"] = 2
    future = executor.submit(compress, "ab")
    print(future.result() in {"ab", "abab"})
