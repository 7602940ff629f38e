"""Readability of a text."""
import re

VOWELS = re.compile(r"[aeiouy]+")


def syllables(word):
    return max(1, len(VOWELS.findall(word)))


def score(text):
    words = text.lower().split()
    total = sum(syllables(word) for word in words)
    sentences = max(1, text.count("."))
    return 206.835 - 1.015 * len(words) / sentences - 84.6 * total / len(words)
