"""Tasks that wait and then compute: fetch pages, parse them, count their words."""


def fetch_parse(paths: tuple[str, ...]) -> dict[str, int]:
    """Fetch HTML pages and return the count of each word in their text.

    Raises:
        RuntimeError: GILSCOPE_HTTP does not say where the service is, or it refused a page.
    """
    from gilscope.workloads.io import fetch

    counts: dict[str, int] = {}
    for body in fetch(paths):
        _count_words(body, counts)
    return counts


async def fetch_parse_async(paths: tuple[str, ...]) -> dict[str, int]:
    """Do what `fetch_parse` does, awaiting each page; parsing blocks the event loop."""
    from gilscope.workloads.io import fetch_async

    counts: dict[str, int] = {}
    for body in await fetch_async(paths):
        _count_words(body, counts)
    return counts


def _count_words(body: bytes, counts: dict[str, int]) -> None:
    """Add the words of one page to `counts`."""
    from html.parser import HTMLParser

    def count(text: str) -> None:
        for word in text.split():
            counts[word] = counts.get(word, 0) + 1

    parser = HTMLParser()
    parser.handle_data = count  # type: ignore[assignment,method-assign]  # a class would have to be made anew in every call
    parser.feed(body.decode("ascii"))
    parser.close()
