"""A catalogue in SQLite; a lookup that fails gives the page without the extra."""
import logging
import sqlite3

log = logging.getLogger("catalogue")
log.addHandler(logging.NullHandler())
log.propagate = False
db = sqlite3.connect(":memory:")
db.execute("create table item (id integer primary key, name text, price integer)")
db.executemany("insert into item values (?, ?, ?)", [(n, f"item {n}", n * 7 % 100) for n in range(2000)])


def expensive(limit):
    try:
        rows = db.execute("select name, price from item where price > ? order by price, name", (limit,)).fetchall()
    except sqlite3.Error as error:
        log.warning("no extra: %s", error)
        return []
    return [f"{name}: {price}" for name, price in rows]


def page(limit):
    head = sum(i * limit % 9 for i in range(3000))
    return [head] + expensive(limit)
