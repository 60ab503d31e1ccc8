"""Statistics over counted trials: scores, comparisons, ranks, plans, charts, and the statistics
page.
"""
