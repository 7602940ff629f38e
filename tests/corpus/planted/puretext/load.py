from puretext.stats import score

TEXT = "Nobody who has not written one knows how long a readable sentence takes. " * 400


def work():
    return score(TEXT)
