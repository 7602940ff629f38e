# EXPECT: unsynchronised read/write or torn multi-step write | Context.user | 19, 15
"""The current user in one object for all threads."""

import threading


class Context:
    user = None


context = Context()


def greet():
    return f"hello {context.user}"


def handle(user, out):
    context.user = user
    out.append(len(greet()))


lengths = [[], []]
handlers = [threading.Thread(target=handle, args=(user, out)) for user, out in zip(("ann", "ben"), lengths)]
for handler in handlers:
    handler.start()
for handler in handlers:
    handler.join()
print(lengths)
