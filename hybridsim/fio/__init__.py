"""Jobs of fio: what they say, which requests they make, and what came of them.

    options              which options there are, and their values
    jobfile              what the user wrote, in files or on the command line, with places
    job, places          what each job is to do, and where its file lies
    requests, results    its requests batch by batch, and what came of them
pattern, generator   the requests of a job, offset for offset those of fio 3.33
random, blockmap, spread, register
                     what the generator draws from
"""
