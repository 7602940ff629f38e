from wordtally.tally import add_document

TEXT = "the quick brown fox jumps over the lazy dog and the cat " * 3000


def work():
    return add_document(TEXT)
