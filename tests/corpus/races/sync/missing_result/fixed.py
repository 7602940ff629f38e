# EXPECT: clean
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
worker.join()
ask(known)
print(known)
