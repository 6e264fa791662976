"""Real runs held against their simulated twins: a table over many, and each in detail.

    holding     every run beside its twin, within bounds or not; what repeats of it say of noise
    bounds      how far a twin may be off
    columns     which of the figures stand in the table over many runs
    text, as_json, html     the same for a terminal, for programs, for a browser
    cli         `validate report`

It stands on `validate.twin` and hybridsim.answers.comparison.
"""
