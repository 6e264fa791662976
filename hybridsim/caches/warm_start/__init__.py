"""A cache that does not begin empty.

    ranking      which pages of an earlier trace it would want to have
    saved_cache  which pages another run ended with, in a file

What the engine does with such a list is in caches/page/preload.py and preloading.py.
"""
