"""What compiled code stands on, and the small compiled parts that all families share.

compiling    how a class of methods becomes machine code: all that knows numba's internals
code_folder  where machine code is kept from one run to the next
prefetch     asking for memory before it is needed
mixing       numbers by chance, the same with each run
index        dense ids for sparse numbers
heap         what waits for its time, in order; events: what will happen next, and whom it concerns
limits       token buckets
"""

from hybridsim.jit.compiling import (
    cache_folder,
    check_part,
    compiled,
    fitting,
    fresh,
    kernel,
    loop,
    method,
    plain_tuple,
    state_machine,
)

__all__ = [
    "cache_folder",
    "check_part",
    "compiled",
    "fitting",
    "fresh",
    "kernel",
    "loop",
    "method",
    "plain_tuple",
    "state_machine",
]
