"""Tasks that hardly read their payload, so that transferring it is the work."""

type Tree = dict[str, Tree | int]


def sample_bytes(payload: bytes | bytearray) -> tuple[int, int]:
    """Return the length, and the sum of 61 bytes spread over the whole."""
    return len(payload), sum(payload[::max(1, len(payload) // 61)][:61])


def sample_ints(payload: list[int]) -> tuple[int, int]:
    """Return the length, and the sum of 61 items spread over the whole."""
    return len(payload), sum(payload[::max(1, len(payload) // 61)][:61])


def sample_tree(payload: Tree) -> tuple[int, int]:
    """Return the number of leaves, by the shape of the first branch, and the last leaf."""
    leaves = 1
    first: object = payload
    last: object = payload
    while isinstance(first, dict) and isinstance(last, dict):
        leaves *= len(first)
        first = first[min(first)]
        last = last[max(last)]
    if not isinstance(last, int):
        raise TypeError(f"the last leaf is {last!r}, not a number")
    return leaves, last
