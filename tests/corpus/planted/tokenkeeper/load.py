from tokenkeeper.auth import sign


def work():
    return sum(sign(f"GET /orders/{n}") for n in range(2500))
