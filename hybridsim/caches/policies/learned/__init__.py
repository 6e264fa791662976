"""The learned policy (LEARNED.md, DESIGN.md 2.4.1): learns a page's worth from the stream.

habits       the class of an access, by what is known at that moment
reuse        whether and when pages of a class are touched again, and the value of caching them
policy       decides which pages are admitted and which are evicted
lessons      the learned state, in words for reports
decisions    the decisions about a page and their reasons, for reports
"""

from hybridsim.caches.policies.learned.policy import Learned

__all__ = ["Learned"]
