"""The pages that the loopback HTTP server serves, and their contents.

Apart from the server because the checks know from here what a right answer is, without fetching or parsing.
"""

_WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo")


def words(number: int, count: int) -> list[str]:
    """Return the `count` words of page `number`."""
    # 11 words, a stride that depends on the page: pages differ, and each uses many of them.
    stride = number % 10 + 1
    return [_WORDS[(number + index * stride) % 11] for index in range(count)]


def page(number: int, count: int) -> bytes:
    """Return page `number` as HTML: `count` words in paragraphs of ten."""
    text = words(number, count)
    paragraphs = "\n".join(
        f'<p class="p{start % 3}">{" ".join(text[start:start + 9])} <b>{" ".join(text[start + 9:start + 10])}</b></p>'
        for start in range(0, count, 10)
    )
    return f"<!doctype html>\n<html><body>\n{paragraphs}\n</body></html>\n".encode("ascii")


def path(number: int, count: int) -> str:
    """Return the path of that page on the server."""
    return f"/page/{number}?words={count}"
