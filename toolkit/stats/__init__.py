"""Statistics: numbers in, numbers out.  Knows nothing of cells, builds or files.

The way of a comparison: `log_times` (one number for each process, without what the machine did meanwhile), `noise` (how
far processes differ, from all cells), `ratios` (estimate, intervals, the word), and then `best` (a set), `looks` (who
needs more rounds), `floor` (the A/A arms check it all), `paired` (the whole way, for arms with one number each), and
`unpaired` (for arms of two runs that were made at different times).
"""
