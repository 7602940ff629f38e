"""Static pages of what was measured and found: whole sites of runs, and reports in one file.

Values come from the documents that terminal and Markdown show; nothing here computes a statistic.
"""
