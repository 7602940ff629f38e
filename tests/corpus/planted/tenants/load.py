from tenants.ctx import bill, spend


def work():
    for n in range(20_000):
        spend("cpu" if n % 3 else "disk", 1)
    return bill()
