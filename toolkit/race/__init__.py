"""Find data races of a Python program by the order its synchronisation imposes, not by luck."""
