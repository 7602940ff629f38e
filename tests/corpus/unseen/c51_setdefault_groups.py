# EXPECT: clean
import threading

groups = {}


def sort_in(words):
    for word in words:
        groups.setdefault(len(word), []).append(word)


texts = [
    "one two three four five",
    "six seven eight nine ten",
    "eleven twelve",
]
threads = [threading.Thread(target=sort_in, args=(text.split(),)) for text in texts]
for t in threads:
    t.start()
for t in threads:
    t.join()
for size, words in sorted(groups.items()):
    print(size, sorted(words))
