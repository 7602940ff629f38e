# EXPECT: unsynchronised read/write or torn multi-step write | global request_id in racy.py | 15, 10
"""The id of the current request as a module variable."""

import threading

request_id = 0


def log(message):
    return f"{request_id:04}: {message}"


def handle(number, out):
    global request_id
    request_id = number
    out.append(log("done")[4:])


logs = [[], []]
threads = [threading.Thread(target=handle, args=(number, out)) for number, out in enumerate(logs)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(logs)
