# EXPECT: check-then-act | *stems['going'] | 10, 15, 16
"""A memo that a loop computes from the key and from what each caller brings: whoever comes first decides."""

import threading

stems = {}


def stem(word, endings):
    if word not in stems:
        found = word
        for ending in endings:
            if word.endswith(ending):
                found = word[:-len(ending)]
        stems[word] = found
    return stems[word]


def read(endings, out):
    out.append(len(stem("going", endings)) > 0)


read_words = [[], []]
threads = [threading.Thread(target=read, args=(endings, out)) for endings, out in zip((["ing"], ["g"]), read_words)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(read_words)
