"""Every thread writes to one dict."""

COUNTS = {}


def f():
    for number in range(50):
        COUNTS[number] = number  # noqa: PERF403 - many writes on purpose
