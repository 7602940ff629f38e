# EXPECT: check-then-act or lost update | Show.left | 24, 26
"""Ticket shop: a semaphore keeps the number of open tills low."""
import threading


class SoldOut(Exception):
    pass


class Show:
    def __init__(self, title, seats):
        self.title = title
        self.left = seats


class Shop:
    def __init__(self, shows, tills):
        self.shows = {show.title: show for show in shows}
        self.tills = threading.BoundedSemaphore(tills)
        self.opening = threading.Barrier(tills)

    def sell(self, title):
        show = self.shows[title]
        if show.left == 0:
            raise SoldOut(title)
        show.left -= 1
        return title

    def till(self, wishes, sold):
        with self.tills:
            self.opening.wait(5)
            for title in wishes:
                sold.append(self.sell(title))


def main():
    shop = Shop([Show("opera", 300), Show("circus", 300)], tills=2)
    sales = [[], []]
    threads = [
        threading.Thread(target=shop.till, args=(["opera", "circus"] * 5, sold))
        for sold in sales
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for sold in sales:
        print(sold.count("opera"), sold.count("circus"))


if __name__ == "__main__":
    main()
