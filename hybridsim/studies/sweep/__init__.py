"""Sweeps: many replays in parallel, and a summary of their results.

quantities   ranges of sizes, times, shares and numbers
plan         what is varied: keys of a scenario, traces, seeds; from options or a TOML file
plan_file    the TOML file
point        one replay: its key, and the command that repeats it
search       the settings to try: a grid, random ones, or a search for the Pareto front
figures      the stored figures of a result
objectives   objectives: measures, cost, gain, size
named_trace  a trace by name, which workers open
worker_cache traces, and disks without a cache, that a worker keeps for its next point
compute      computation of a point by a worker
store        results on disk
workers, cluster, fork_server
             workers: this process, or a dask cluster
running      assignment of points to workers, and storage of the results
seeds        which results depend on the seed
confidence   mean over several seeds with its confidence interval
answer       the result of a sweep: estimates, Pareto front, effects
fleet        the volumes of one large trace
"""
