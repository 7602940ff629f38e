"""Word count: threads count their chunks in local dicts and merge them under a lock."""

import threading

VOCABULARY = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which"
    " one you were all her she there would their we him been has when who will no more if out so up said what its about"
).split()
TEXTS, CHUNKS, WORDS, THREADS = 5, 200, 4_000, 4


def make_chunk(number):
    state, words = number * 7 + 3, []
    for _ in range(WORDS):
        state = (state * 1_103_515_245 + 12_345) % 2**31
        words.append(VOCABULARY[(state >> 8) % len(VOCABULARY)])
    return " ".join(words)


def count_words(text):
    counts = {}
    for word in text.split():
        word = word.strip(".,;").lower()
        if word in counts:
            counts[word] += 1
        else:
            counts[word] = 1
    return counts


class WordCount:
    def __init__(self, chunks):
        self.chunks = chunks
        self.next_chunk = 0
        self.totals = {}
        self.lock = threading.Lock()

    def claim(self):
        with self.lock:
            if self.next_chunk == len(self.chunks):
                return None
            self.next_chunk += 1
            return self.chunks[self.next_chunk - 1]

    def merge(self, counts):
        with self.lock:
            for word, count in counts.items():
                self.totals[word] = self.totals.get(word, 0) + count

    def work(self):
        while (chunk := self.claim()) is not None:
            self.merge(count_words(chunk))


def main():
    texts = [make_chunk(number) for number in range(TEXTS)]
    job = WordCount([texts[number % TEXTS] for number in range(CHUNKS)])
    threads = [threading.Thread(target=job.work, name=f"counter-{number}") for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ranked = sorted(job.totals.items(), key=lambda item: (-item[1], item[0]))
    print("checksum", sum(job.totals.values()), ranked[:3])


if __name__ == "__main__":
    main()
