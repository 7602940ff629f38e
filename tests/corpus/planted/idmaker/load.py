from idmaker.ids import invoice


def work():
    return [invoice(400)[0] for _ in range(400)]
