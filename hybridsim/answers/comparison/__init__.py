"""The comparison of a simulated run with a real one: aligned curves, and one row per figure.

    tolerances  the largest errors allowed: those of `--tolerance`, and the defaults
    rows        the results of a comparison
    curves      two curves on the same bins, as warm-ups
    comparing   the whole comparison

Its input is two Measurements (`answers/measurements/`), not files.
"""
