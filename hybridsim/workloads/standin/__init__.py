"""A stand-in for a capture: requests with the same behaviour, generated from distributions alone.

    measured     the parts of a capture (runs of requests, objects and their classes, visits to
                 them), and all distributions
    making       generation of the requests and their arrival times

An object is a sequence of 64 KiB pages that are used together: a page with random reads, a file
that is read sequentially, a journal.  A visit is one run of requests through a part of an object.
Each object has a size, a number of visits, a birth and a life; the pauses between its visits,
relative to their mean, are drawn from those of objects with a similar number of visits.  Pauses
determine the miss-ratio curve, births the first accesses, counts the popularity (P. J. Denning,
"The working set model for program behavior", CACM 11(5), 1968: misses follow from the times between
references).
"""
