"""Counts words of documents for the search index."""
import re
from collections import Counter

WORD = re.compile(r"[a-z]+")
TOTALS = Counter()


def words(text):
    return WORD.findall(text.lower())


def add_document(text):
    found = words(text)
    TOTALS.update(found)
    return len(found)
