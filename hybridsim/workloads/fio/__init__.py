"""fio jobs: their options, the requests that they issue, and their results.

    options              the options and their values
    jobfile              job files and command lines, parsed with places
    job, reader, replay, goal, sizes, distribution, shares
                         one job with its options as numbers
    places               layout of the files on the volume
    replaying, arrivals  requests from a log (read_iolog); arrival times
    requests, results    requests in batches; results of the jobs
    endings              messages for jobs that a limit ended
    conditions, monitor  minimum rates and steady states: options, and checks during a run
    real_run             constraints from a real run that is simulated
pattern, tables, generator, turns, history
                     the requests of a job, with the same offsets as fio 3.33
random, blockmap, spread, register
                     random numbers and the maps that the generator uses
"""
