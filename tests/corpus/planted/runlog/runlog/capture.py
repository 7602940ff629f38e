"""Runs a job and keeps what it prints."""
import contextlib
import io


def job(name, steps=400):
    value = 0
    for step in range(steps):
        value = (value * 33 + step) % 1_000_003
        print(name, step, value)
    return value


def run(name):
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        job(name)
    return buffer.getvalue()
