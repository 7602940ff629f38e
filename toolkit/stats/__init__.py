"""Statistics: numbers in, numbers out.  Knows nothing of cells, builds or files.

A comparison goes through `log_times` (one number per process, corrected for the machine's load), `noise` (the spread of
processes, pooled over all cells) and `ratios` (estimate, confidence intervals, verdict).  Then follow `best` (the set
that contains the fastest), `interim_looks` (cells that need more rounds) and `noise_floor` (the A/A arms check the
rest).  `noise` is made of `arm_scales` (arms that err unlike the others), `pair_kinds` (what rounds do to one class
of arms) and `serial_correlation`.  `paired` does all of it for arms with one number per process, `sessions` puts
sessions in the place of rounds, and `unpaired` compares arms of two separate runs.
"""
