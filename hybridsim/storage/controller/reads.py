"""Reads of a controller: each sector from DRAM or array, and read-ahead of sequential readers."""

from __future__ import annotations

from hybridsim.foundation.codes import Op
from hybridsim.jit import kernel
from hybridsim.storage.controller.counts import AHEAD_READ, DRAM_READ, WINDOW, WINDOW_WAITED
from hybridsim.storage.controller.lines import SECTOR
from hybridsim.storage.controller.windows import READY

READ = int(Op.READ)
NOTHING = -1


@kernel
def read(controller, now, job, events):
    """Read each sector from DRAM or array, and read ahead of sequential streams."""
    windows = controller.windows
    offset = controller.jobs.offset[job]
    length = controller.jobs.length[job]
    start = offset // SECTOR * SECTOR
    end = (offset + length + SECTOR - 1) // SECTOR * SECTOR
    missing, missing_end, in_dram = gather(controller, job, start, end)
    if windows.slots.used() > 0:
        windows.drop_passed(start, end)
    if in_dram > 0:
        controller.counts[DRAM_READ] += in_dram
        controller.jobs.pending[job] += 1
        controller.link.send(now, controller.link.take(job, in_dram), events)
    if missing != NOTHING:
        begin = max(missing, offset)
        upto = min(missing_end, offset + length)
        controller.ask_array(now, job, controller.jobs.op[job], begin, upto - begin, events)
    if windows.slots.capacity > 0:
        stream = windows.streams.extend(offset, length)
        if windows.streams.run_requests[stream] >= windows.after:
            read_ahead(controller, now, end, events)


@kernel
def gather(controller, job, start, end):
    """Locate each sector; return start and end of the missing range, and the bytes in DRAM."""
    lines = controller.lines
    windows = controller.windows
    missing = NOTHING
    missing_end = NOTHING
    in_dram = 0
    at = start
    while at < end:
        upto = end
        held = False
        if windows.slots.used() > 0:
            upto = min(upto, windows.border(at))
        if lines.slots.used() > 0:
            upto = min(upto, lines.border(at))
            of_line = lines.held(at)
            mask = lines.mask(at, upto)
            if of_line & mask != 0 and of_line & mask != mask:
                upto = at + SECTOR
                mask = lines.mask(at, upto)
            held = of_line & mask != 0
        window = NOTHING if held else windows.holding(at)
        if held:
            in_dram += upto - at
        elif window == NOTHING:
            if missing == NOTHING:
                missing = at
            missing_end = upto
        elif windows.state[window] == READY:
            windows.ready.touch(window)
            in_dram += upto - at
        else:
            wait_for(controller, window, job, upto - at)
        at = upto
    return missing, missing_end, in_dram


@kernel
def wait_for(controller, window, job, length):
    """Queue a transfer of a job's bytes until the window has been read."""
    controller.counts[WINDOW_WAITED] += length
    windows = controller.windows
    last = windows.last_waiting[window]
    if windows.first_waiting[window] == NOTHING:
        windows.first_waiting[window] = windows.last_waiting[window] = waiter(
            controller, job, length
        )
    elif controller.link.job[last] == job:
        controller.link.length[last] += length
    else:
        windows.last_waiting[window] = controller.link.next[last] = waiter(controller, job, length)


@kernel
def waiter(controller, job, length):
    """Allocate a transfer that will be sent later."""
    controller.jobs.pending[job] += 1
    return controller.link.take(job, length)


@kernel
def read_ahead(controller, now, at, events):
    """Make sure that the data after byte `at` is in DRAM or being read."""
    windows = controller.windows
    end = min(at + windows.ahead_bytes, controller.capacity_bytes)
    if at >= end:
        return
    size = windows.window_bytes
    for number in range(at // size, (end - 1) // size + 1):
        if windows.slots.find(number) != NOTHING:
            continue
        start = max(at, number * size)
        slot = windows.claim(number, start)
        if slot == NOTHING:
            return
        length = windows.end(number) - start
        controller.counts[AHEAD_READ] += length
        controller.array.submit(now, slot << 2 | WINDOW, READ, start, length, events)


@kernel
def window_arrived(controller, now, window, events):
    """Send the transfers that waited for a window, and make it ready."""
    link = controller.link
    transfer = controller.windows.first_waiting[window]
    while transfer != NOTHING:
        behind = link.next[transfer]
        link.send(now, transfer, events)
        transfer = behind
    controller.windows.arrived(window)
