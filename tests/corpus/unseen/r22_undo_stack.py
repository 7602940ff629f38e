# EXPECT: torn multi-step write or lost update | *operations* | 19, 20
# EXPECT: torn multi-step write or lost update or unsynchronised read/write | UndoStack.position | 19, 20
"""Undo stack of a small editor; typing and autocorrect both record edits."""
import threading


class Edit:
    def __init__(self, kind, text):
        self.kind = kind
        self.text = text


class UndoStack:
    def __init__(self):
        self.operations = []
        self.position = 0

    def record(self, edit):
        self.operations[self.position:] = [edit]
        self.position = len(self.operations)

    def undo(self):
        if self.position == 0:
            return None
        self.position -= 1
        return self.operations[self.position]


class Source:
    def __init__(self, stack, kind, words):
        self.stack = stack
        self.kind = kind
        self.words = words
        self.recorded = 0

    def run(self):
        for word in self.words:
            self.stack.record(Edit(self.kind, word))
            self.recorded += 1


def main():
    stack = UndoStack()
    sources = [
        Source(stack, "type", ["teh", "cat", "adn", "dog"]),
        Source(stack, "correct", ["the", "and"]),
    ]
    threads = [threading.Thread(target=s.run, name=s.kind) for s in sources]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print([s.recorded for s in sources], stack.undo() is not None)


if __name__ == "__main__":
    main()
