# EXPECT: clean
"""Undo stack owned by an actor; others send it messages and wait for replies."""
import queue
import threading


class Reply:
    def __init__(self):
        self._done = threading.Event()
        self._value = None

    def set(self, value):
        self._value = value
        self._done.set()

    def get(self):
        if not self._done.wait(5):
            raise TimeoutError
        return self._value


class UndoActor(threading.Thread):
    def __init__(self):
        super().__init__()
        self._mailbox = queue.SimpleQueue()
        self._operations = []
        self._position = 0

    def run(self):
        while True:
            method, args, reply = self._mailbox.get()
            if method is None:
                break
            reply.set(method(self, *args))

    def _ask(self, method, *args):
        reply = Reply()
        self._mailbox.put((method, args, reply))
        return reply.get()

    def _record(self, text):
        self._operations[self._position:] = [text]
        self._position += 1
        return self._position

    def _undo(self):
        if self._position:
            self._position -= 1
            return self._operations[self._position]
        return None

    def record(self, text):
        return self._ask(UndoActor._record, text)

    def undo(self):
        return self._ask(UndoActor._undo)

    def close(self):
        self._mailbox.put((None, (), None))
        self.join()
        return self._position


def typist(actor, words):
    for word in words:
        actor.record(word)


def main():
    actor = UndoActor()
    actor.start()
    threads = [
        threading.Thread(target=typist, args=(actor, words))
        for words in (["a", "b", "c"], ["x", "y"])
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    undone = [actor.undo() for _ in range(5)]
    print(sorted(undone), actor.undo(), actor.close())


main()
