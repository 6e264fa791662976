"""A stand-in for a capture: requests that behave alike, made from distributions alone.

    classes      how sizes, counts, births and lives are put into classes
    objects      what a capture is made of: runs of requests, objects, visits to them
    lives        what is known of each object, as classes
    habits       what visits have in common
    measured     all distributions of a capture
    layout       where the objects lie
    arrivals     how one gap between requests follows another
    making       the requests of the visits, and when they arrive

An object is a piece of 64 KiB pages that are used together: a page that is read here and there, a
file that is read whole, a journal.  A visit is one run of requests through a part of an object.
Each object has a size, a number of visits, a birth and a life; the pauses between its visits,
relative to their mean, are drawn from those of objects with about as many visits.  Pauses decide
the miss-ratio curve, births the first uses, counts the popularity (P. J. Denning, "The working set
model for program behavior", CACM 11(5), 1968: misses follow from the times between references).
"""
