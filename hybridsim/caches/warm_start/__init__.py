"""A cache that does not start empty.

    ranking      the pages of an earlier trace that are worth most to a cache
    saved_cache  the pages that a cache held at the end of a run, in a file

The engine's part is in caches/page/fills.py.
"""
