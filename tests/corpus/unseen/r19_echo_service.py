# EXPECT: lost update | EchoServer.bytes_in | 19
"""Echo service on the loopback interface with one thread per client."""
import socket
import threading


class EchoServer:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.bytes_in = 0

    def handle(self, connection):
        with connection:
            while True:
                data = connection.recv(1024)
                if not data:
                    break
                self.bytes_in += len(data)
                connection.sendall(data)

    def serve(self, clients):
        handlers = []
        for _ in range(clients):
            connection, _address = self.listener.accept()
            handler = threading.Thread(target=self.handle, args=(connection,))
            handler.start()
            handlers.append(handler)
        for handler in handlers:
            handler.join()
        self.listener.close()


def ask(port, text):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        s.sendall(text.encode())
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := s.recv(1024):
            answer += chunk
    return answer.decode()


def main():
    server = EchoServer()
    acceptor = threading.Thread(target=server.serve, args=(3,))
    acceptor.start()
    answers = [ask(server.port, text) for text in ("hello", "world", "bye")]
    acceptor.join()
    print(answers)


if __name__ == "__main__":
    main()
