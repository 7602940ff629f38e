import hashlib

from clickstats.stats import click

PAGE = bytes(6_000_000)


def work():
    for _ in range(300):
        click("Home"), click("SHOP"), click("blog")
    return hashlib.sha256(PAGE).hexdigest()
