# EXPECT: lost update | *letters* | 10
import threading
from collections import Counter

letters = Counter()


def count(text):
    for letter in text:
        letters[letter] += 1


texts = ["banana", "cabana", "ananas"]
threads = [threading.Thread(target=count, args=(text,)) for text in texts]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(sorted(letters))
