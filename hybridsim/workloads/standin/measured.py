"""The distributions of a capture: all that its stand-in is generated from."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Requests
from hybridsim.workloads.standin import arrivals, habits, layout
from hybridsim.workloads.standin.classes import SIZE_EDGES
from hybridsim.workloads.standin.lives import Lives, by_class
from hybridsim.workloads.standin.objects import Rows, Visits, taken_apart


def measured(requests: Requests) -> dict[str, Any]:
    """Return the table of a stand-in for the requests of a capture."""
    is_data = np.isin(requests.op, (Op.READ, Op.WRITE, Op.WRITE_ZEROES))
    is_data &= requests.length_bytes > 0
    if not is_data.any():
        return {"accesses": 0}
    rows = Rows(
        requests.offset_bytes[is_data].astype(np.int64),
        requests.length_bytes[is_data].astype(np.int64),
        requests.op[is_data] != Op.READ,
    )
    objects, visits = taken_apart(rows)
    visits = Visits._make(column[np.lexsort((visits.first, visits.object))] for column in visits)
    life = Lives(objects, visits, len(rows.offset))
    starts, repeats = habits.starts(visits, life)
    return {
        "accesses": len(rows.offset),
        "objects": life.table(),
        "sizes": by_class(objects.pages, life.size, len(SIZE_EDGES), 9),
        "counts": life.counts(),
        "pauses": life.pauses(),
        "serial": life.serial(),
        "written": life.written(),
        "starts": starts,
        "repeats": repeats,
        "together": habits.together(visits, objects, life, len(rows.offset)),
        "from_begin": habits.from_begin(visits, life),
        "shapes": habits.shapes(visits, life, objects),
        "pace": habits.pace(visits, life),
        "order": layout.order(life),
        "born_together": layout.born_together(life),
        "gaps": layout.gaps(objects, life),
        "reach": int(objects.page[-1] + objects.pages[-1]),
        **arrivals.measured(requests, is_data),
    }
