# EXPECT: clean
"""Tokenizer with an idempotent memo: computing a piece twice gives the same."""
import threading

SUFFIXES = ("ing", "ed", "s")


def split_word(word):
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) > len(suffix) + 1:
            return word[: -len(suffix)], "##" + suffix
    return (word,)


class Tokenizer:
    def __init__(self):
        self._memo = {}

    def pieces(self, word):
        found = self._memo.get(word)
        if found is None:
            found = split_word(word)
            self._memo[word] = found
        return found

    def tokenize(self, text):
        tokens = []
        for word in text.lower().split():
            tokens.extend(self.pieces(word))
        return tokens

    @property
    def known(self):
        return sorted(self._memo)


class Batch(threading.Thread):
    def __init__(self, tokenizer, texts):
        super().__init__()
        self.tokenizer = tokenizer
        self.texts = texts
        self.output = []

    def run(self):
        self.output = [self.tokenizer.tokenize(text) for text in self.texts]


def main():
    tokenizer = Tokenizer()
    batches = [
        Batch(tokenizer, ["The dogs barked", "dogs running"]),
        Batch(tokenizer, ["the cats barked", "running cats"]),
    ]
    for b in batches:
        b.start()
    for b in batches:
        b.join()
    for b in batches:
        print(b.output)
    print(tokenizer.known)


main()
