"""Ask several sensors at once; each takes its time to answer."""

import threading
import time


def ask(seconds=0.05):
    """Wait for the answer of one sensor."""
    time.sleep(seconds)
    return 20


def ask_all(count):
    """Return what so many sensors say."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


if __name__ == "__main__":
    for _ in range(4):
        ask_all(4)
