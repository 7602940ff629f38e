"""gilscope experiment: the classic GIL experiments, listed, explained and made."""
