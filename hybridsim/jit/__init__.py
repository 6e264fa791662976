"""Compilation, and the small compiled parts that all other folders share.

compiling    how a class of methods becomes machine code: all use of numba's internals
lean         a small compiler for methods, a tenth of numba's work
waiting      what is being compiled, for those who wait for it
code_folder  the folders of machine code: that of earlier runs, and that inside the package
instructions fetching memory before it is needed, log2 of whole numbers
mixing       pseudo-random numbers, the same in each run
lists        pools, queues, lists and hash tables of numbered entries, dense ids for sparse numbers
events       a heap by time, and scheduled events, each with the part that it concerns
limits       token buckets
"""

from hybridsim.jit.compiling import (
    cache_folder,
    check_part,
    compiled,
    fitting,
    fresh,
    is_kept,
    kernel,
    loop,
    method,
    of_these_types,
    plain_tuple,
    state_machine,
)

__all__ = [
    "cache_folder",
    "check_part",
    "compiled",
    "fitting",
    "fresh",
    "is_kept",
    "kernel",
    "loop",
    "method",
    "of_these_types",
    "plain_tuple",
    "state_machine",
]
