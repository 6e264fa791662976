"""Measure real fio on a real kernel cache, and compare a simulation with the result.

Everything that runs beside the cache needs only Python's standard library, since it also runs in a
guest that has nothing else.  `lab` and `report` may need more, and are imported when called.
"""
