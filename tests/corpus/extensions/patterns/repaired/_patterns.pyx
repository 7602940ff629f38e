# cython: freethreading_compatible = True
# cython: language_level = 3
cimport cython
import re

cdef object word = re.compile(r"[a-z]+")


def words(text):
    return word.findall(text)
