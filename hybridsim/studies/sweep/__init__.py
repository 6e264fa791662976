"""Many replays at once: which, by whom, and what their results say together.

quantities   ranges of sizes, times, shares and numbers
plan         what is varied: keys of a scenario, traces, seeds; from options or a TOML file
plan_file    the TOML file
point        one replay to be done: its key, and the command that repeats it
search       which settings to try: a grid, at random, or towards the Pareto front
figures      what is kept of a result
objectives   what is wanted of it
kept         traces, and disks without a cache, that a worker keeps for its next point
computing    what a worker does
store        results on disk
crew         workers: this process, or a cluster
running      points, workers and store brought together
chance       what differs between seeds, so that it is run with several
confidence   a mean over several seeds, and how far the true one may be from it
answer       the result of a sweep: estimates, Pareto front, effects
fleet        the volumes of one big trace
"""
