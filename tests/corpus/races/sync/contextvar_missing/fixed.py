# EXPECT: clean
"""The id of the current request as a module variable."""

import threading
from contextvars import ContextVar

request_id = ContextVar("request_id", default=0)


def log(message):
    return f"{request_id.get():04}: {message}"


def handle(number, out):
    request_id.set(number)
    out.append(log("done")[4:])


logs = [[], []]
threads = [threading.Thread(target=handle, args=(number, out)) for number, out in enumerate(logs)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(logs)
