"""How far a simulated run is from a real one: aligned curves, and one row for each figure.

    tolerances  how far it may be: those of `--tolerance`, and the defaults
    rows        what a comparison finds
    matching    which job, curve and latency of one run belongs to which of the other
    curves      two curves on the same bins, as warm-ups
    comparing   all of it

It reads no files, only two Measurements (`answers/measurements/`).
"""
