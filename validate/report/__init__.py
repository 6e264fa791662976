"""Compare real runs with their simulated twins: a table of all runs, and details of each.

    holding     compares each run with its twin; noise from repeated runs
    chance      how far twins that begin at other moments differ
    bounds      the bounds of the errors of a twin
    columns     the columns of the table of all runs
    text, as_json, html     the report for a terminal, for programs, for a browser
    cli         `validate report`

It uses `validate.twin` and hybridsim.answers.comparison.
"""
