from confread.conf import read

TEXT = "\n".join(f"k{n}: [1, 2, {n}]" for n in range(60))


def work():
    return len(read(TEXT))
