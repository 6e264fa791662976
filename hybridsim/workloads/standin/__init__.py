"""A stand-in for a capture: requests with the same behaviour, generated from distributions alone.

    classes      classes of sizes, counts, births and lives
    objects      the parts of a capture: runs of requests, objects, visits to objects
    lives        the classes of each object, and the pauses between its visits
    habits       the distributions of visits
    measured     all distributions of a capture
    layout       addresses of the objects
    arrivals     the gaps between requests
    table        the distributions as a table of a workload file
    making       generation of the requests and their arrival times

An object is a sequence of 64 KiB pages that are used together: a page with random reads, a file
that is read sequentially, a journal.  A visit is one run of requests through a part of an object.
Each object has a size, a number of visits, a birth and a life; the pauses between its visits,
relative to their mean, are drawn from those of objects with a similar number of visits.  Pauses
determine the miss-ratio curve, births the first accesses, counts the popularity (P. J. Denning,
"The working set model for program behavior", CACM 11(5), 1968: misses follow from the times between
references).
"""
