# EXPECT: lost update | *.handled | 12, 12
"""The counting happens in a base class."""

from threading import Thread


class Handler:
    def __init__(self):
        self.handled = 0

    def handle(self, request):
        self.handled += 1
        return request


class UpperHandler(Handler):
    def handle(self, request):
        return super().handle(request).upper()


handler = UpperHandler()
answers = [[], []]


def serve(requests, out):
    for request in requests:
        out.append(handler.handle(request))


servers = [Thread(target=serve, args=(["a", "b", "c"], out)) for out in answers]
for server in servers:
    server.start()
for server in servers:
    server.join()
print(answers)
