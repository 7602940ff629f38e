# EXPECT: unsynchronised read/write | *_weights* | 14, 18
"""Tokenizer whose token weights are re-trained in the background."""
import threading


class Vocabulary:
    def __init__(self, words):
        self._read_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._weights = {word: 1 for word in words}

    def weight(self, word):
        with self._read_lock:
            return self._weights[word]

    def retrain(self, word, weight):
        with self._write_lock:
            self._weights[word] = weight


class Tokenizer:
    def __init__(self, vocabulary):
        self.vocabulary = vocabulary

    def tokens(self, text):
        for word in text.lower().split():
            yield word, self.vocabulary.weight(word)


def reader(tokenizer, texts, lengths):
    for text in texts:
        lengths.append(len(list(tokenizer.tokens(text))))


def trainer(vocabulary, weights):
    for word, weight in weights:
        vocabulary.retrain(word, weight)


def main():
    vocabulary = Vocabulary(["the", "sun", "is", "up", "down"])
    tokenizer = Tokenizer(vocabulary)
    lengths = []
    threads = [
        threading.Thread(
            target=reader,
            args=(tokenizer, ["The sun is up", "the sun is down", "up up"], lengths),
        ),
        threading.Thread(
            target=trainer,
            args=(vocabulary, [("sun", 5), ("up", 3), ("down", 4)]),
        ),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(lengths, vocabulary.weight("sun"))


main()
