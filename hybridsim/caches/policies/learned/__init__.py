"""The learned policy (LEARNED.md, DESIGN.md 2.4.1): who is worth a place, learned from the stream.

habits       the class of an access, by what is known at that moment
regions      whether a request continues a run, and how long its neighbourhood was at rest
halfoctaves  ages told apart by their logarithm: two an octave
reuse        how soon, if at all, pages of a class are touched again
worth        what follows from that for a place in the cache
companions   pages touched in one request, which leave together
policy       who is let in, and who has to leave
lessons      what was learned, for a person
decisions    what was decided about a page and why, for a person
"""

from hybridsim.caches.policies.learned.policy import Learned

__all__ = ["Learned"]
