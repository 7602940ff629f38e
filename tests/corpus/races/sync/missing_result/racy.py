# EXPECT: unsynchronised read/write | results['answer'] | 11, 15
"""A result is looked up while its worker may not have stored it yet."""

import threading
import time

results = {}


def work():
    results["answer"] = 6 * 7


def ask(known):
    known.append(results.get("answer") in {None, 42})


known = []
worker = threading.Thread(target=lambda: (time.sleep(0.1), work()))
worker.start()
ask(known)
worker.join()
print(known)
