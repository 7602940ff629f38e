# cython: freethreading_compatible = True
# cython: language_level = 3
cimport cython
import re

cdef object word = None


def words(text):
    global word
    if word is None:
        word = re.compile(r"[a-z]+")
    return word.findall(text)
