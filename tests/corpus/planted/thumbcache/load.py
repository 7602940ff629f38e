from thumbcache.images import thumb


def work():
    return sum(thumb(n % 400) for n in range(9000))
