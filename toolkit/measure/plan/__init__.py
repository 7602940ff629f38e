"""What to measure and how hard: cells, settings, what each needs of the cores, how long it will take."""
