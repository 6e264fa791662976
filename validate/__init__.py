"""Real fio on a real kernel cache, measured so that a simulation can be held against it.

Everything that runs beside the cache needs Python's standard library only: it also runs in a guest
that has nothing else.  `lab` and `report` may need more, and are imported when they are called.
"""
