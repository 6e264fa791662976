"""The learned policy (LEARNED.md, DESIGN.md 2.4.1): learns a page's worth from the stream.

habits       the class of an access, by what is known at that moment
regions      whether a request continues a run, and how long its region was idle
halfoctaves  ages on a logarithmic scale: two per octave
reuse        whether and when pages of a class are touched again
worth        the value of caching a page, computed from these chances
companions   pages touched in one request, which are evicted together
policy       decides which pages are admitted and which are evicted
lessons      the learned state, in words for reports
decisions    the decisions about a page and their reasons, for reports
"""

from hybridsim.caches.policies.learned.policy import Learned

__all__ = ["Learned"]
