# EXPECT: check-then-act | *table* | 12, 13, 14
"""A closure that builds its table on first use."""

import threading


def make_lookup(words):
    table = None

    def lookup(word):
        nonlocal table
        if table is None:
            table = {each: len(each) for each in words}
        return table[word]

    return lookup


lookup = make_lookup(["cat", "horse"])
found = [0, 0]


def find(index, word):
    found[index] = lookup(word)


finders = [threading.Thread(target=find, args=(index, word)) for index, word in enumerate(["cat", "horse"])]
for finder in finders:
    finder.start()
for finder in finders:
    finder.join()
print(found)
