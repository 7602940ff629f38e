# EXPECT: torn multi-step write or unsynchronised read/write | Endpoint.host | 15, 19
# EXPECT: torn multi-step write or unsynchronised read/write | Endpoint.port | 16, 19
"""Host and port change together, so they are read and written together."""

import threading


class Endpoint:
    def __init__(self, host, port):
        self.host = host
        self.port = port
        self.lock = threading.Lock()

    def move(self, host, port):
        self.host = host
        self.port = port

    def address(self):
        return f"{self.host}:{self.port}"


endpoint = Endpoint("alpha", 1)
seen = []
mover = threading.Thread(target=endpoint.move, args=("beta", 2))
caller = threading.Thread(target=lambda: seen.append(endpoint.address()))
mover.start()
caller.start()
mover.join()
caller.join()
print(endpoint.address(), len(seen))
