"""Jobs of fio: what they say, which requests they make, and what came of them.

    options              which options there are, and their values
    jobfile              what the user wrote, in files or on the command line, with places
    job, reader, replay, goal, sizes, distribution, shares
                         what each job is to do, option by option
    places               where its files lie
    replaying, arrivals  requests from a log instead, and when they are due
    requests, results    its requests batch by batch, and what came of them
    endings              why a job ended, where its latencies decided it
pattern, tables, generator
                     the requests of a job, offset for offset those of fio 3.33
random, blockmap, spread, register
                     what the generator draws from
"""
