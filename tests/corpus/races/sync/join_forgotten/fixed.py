# EXPECT: clean
"""The result is read without waiting for the thread."""

import threading


class Parser(threading.Thread):
    def __init__(self, text):
        super().__init__()
        self.text = text
        self.tree = None

    def run(self):
        self.tree = self.text.split()


parser = Parser("a b c")
parser.start()
parser.join()
tree = parser.tree
print(tree in (None, ["a", "b", "c"]))
