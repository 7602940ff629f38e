# EXPECT: clean
import threading


class Promise:
    __slots__ = ("_gate", "_value")

    def __init__(self):
        self._gate = threading.Lock()
        self._gate.acquire()

    def fulfil(self, value):
        self._value = value
        self._gate.release()

    def get(self):
        with self._gate:
            return self._value


def solve(promise, n):
    answer = {"n": n}
    answer["square"] = n * n
    promise.fulfil(answer)


promises = [Promise() for _ in range(3)]
for n, promise in enumerate(promises):
    threading.Thread(target=solve, args=(promise, n)).start()
for promise in promises:
    answer = promise.get()
    answer["seen"] = True
    print(answer)
