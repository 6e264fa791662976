"""fio jobs: their options, the requests that they issue, and their results.

options              the options and their values
jobfile              job files and command lines, parsed with places
job, reader          one job with its options as numbers; constraints from a real run
places               layout of the files on the volume
requests, results    requests in batches, with arrival times, also of a log (read_iolog); results,
                     and why jobs ended
conditions           minimum rates and steady states: options, and checks during a run
pattern, generator, blocks
                     the requests of a job, with the same offsets as fio 3.33
"""
