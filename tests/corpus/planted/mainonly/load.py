from mainonly.index import rebuild


def work():
    return rebuild()
