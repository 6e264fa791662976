"""Sweeps: many replays in parallel, and a summary of their results.

sweep        the sweep, and the search for settings: a grid, random ones, or the Pareto front
plan         what is varied: keys of a scenario (ranges too), traces, seeds; a TOML file of it
point        one replay: its key, the command that repeats it, its computation by a worker
figures      the stored figures of a result, and objectives: measures, cost, gain, size
named_trace  a trace by name, which workers open; the volumes of a large one
store        results on disk, and their export
cluster, fork_server
             workers: a dask cluster
running      assignment of points to workers, and storage of the results
seeds        which results depend on the seed; means over seeds with confidence intervals
answer       the result of a sweep: estimates, Pareto front, effects
"""
