# EXPECT: clean
"""Echo service with socketserver; statistics under a lock."""
import socket
import socketserver
import threading


class Statistics:
    def __init__(self):
        self._lock = threading.Lock()
        self._lines = 0
        self._longest = ""

    def record(self, line):
        with self._lock:
            self._lines += 1
            if len(line) > len(self._longest):
                self._longest = line

    def read(self):
        with self._lock:
            return self._lines, self._longest


class EchoHandler(socketserver.StreamRequestHandler):
    def handle(self):
        served = 0
        for raw in self.rfile:
            line = raw.decode().rstrip("\n")
            self.server.statistics.record(line)
            served += 1
            self.wfile.write(("%d:%s\n" % (served, line)).encode())


class EchoServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), EchoHandler)
        self.statistics = Statistics()


def talk(port, lines, answers):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        with s.makefile("rw", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(line + "\n")
                file.flush()
                answers.append(file.readline().strip())


def main():
    with EchoServer() as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        port = server.server_address[1]
        answers = [[], []]
        clients = [
            threading.Thread(target=talk, args=(port, ["hello", "bye"], answers[0])),
            threading.Thread(target=talk, args=(port, ["a longer one"], answers[1])),
        ]
        for c in clients:
            c.start()
        for c in clients:
            c.join()
        server.shutdown()
        serving.join()
    print(answers, server.statistics.read())


main()
