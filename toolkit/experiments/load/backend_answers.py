"""The answers of `aggregator`'s back ends and the correct merged answer.

Apart from back ends and services, since both import it, and so does the load generator, which checks every answer.
"""

from __future__ import annotations

from typing import Any

# Five services behind a product page.  Their latencies add up to 0.37 s one after the other, to 0.1 s at once.
BACKENDS = {"product": 0.05, "stock": 0.06, "price": 0.07, "reviews": 0.09, "shipping": 0.1}  # seconds
ITEMS = 20             # entries of an answer: about 1 KiB of JSON
MERGED_PATH = "/merged/"
PART_PATH = "/part/"


def part(backend: str, number: int) -> dict[str, Any]:
    """Return the answer of the back end `backend` for product `number`."""
    salt = len(backend) * 7919
    return {
        "backend": backend,
        "product": number,
        "items": [{"id": index, "score": (number * 31 + index * salt) % 1009, "label": f"{backend}-{index}"}
                  for index in range(ITEMS)],
    }


def merge(number: int, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the answer of the service: a summary of each back end's part, and the sum of all scores.

    Raises:
        ValueError: a part is missing, of another product or of no back end.
    """
    if [each["backend"] for each in parts] != list(BACKENDS) or any(each["product"] != number for each in parts):
        raise ValueError(f"these are not the parts of product {number}")
    scores = {each["backend"]: sum(item["score"] for item in each["items"]) for each in parts}
    best = {each["backend"]: max(each["items"], key=lambda item: item["score"])["label"] for each in parts}
    return {"product": number, "scores": scores, "best": best, "total": sum(scores.values())}


def merged(number: int) -> dict[str, Any]:
    """Return the correct answer of the service for product `number`."""
    return merge(number, [part(backend, number) for backend in BACKENDS])


def number_in(target: str, prefix: str) -> int | None:
    """Return the number after `prefix` in a request's target, or None if it is not such a target."""
    text = target.removeprefix(prefix)
    is_number = text.isascii() and text.isdecimal() and len(text) < 19  # 18 digits fit in 64 bits
    return int(text) if text != target and is_number else None
