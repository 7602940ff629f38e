# EXPECT-NOTE: idempotent memo | *stems[* | 11, 12, 17, 18
"""A memo that a loop computes from the key and from constants: computing it twice does no harm."""

import threading

stems = {}


def stem(word):
    """Return the word without its ending."""
    if word not in stems:
        found = word
        for ending in ("ing", "ed"):
            if word.endswith(ending):
                found = word[:-len(ending)]
                break
        stems[word] = found
    return stems[word]


def read(words, out):
    out.extend(stem(word) for word in words)


read_words = [[], []]
threads = [threading.Thread(target=read, args=(["going", "went"], out)) for out in read_words]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(read_words)
