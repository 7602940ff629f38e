"""What a user's function may do with its time."""

import sys
import time

print("loaded", file=sys.stderr)


def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def sleep(seconds):
    time.sleep(seconds)


def print_and_sleep(seconds):
    print(".")
    sleep(seconds)
