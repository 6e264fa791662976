"""dm-cache's policy beside the kernel's own source, call for call.

HYBRIDSIM_KERNEL_SOURCE names an unpacked kernel tree of the user, as Debian's linux-source-6.1 or
linux-source-6.12 has it; of it only drivers/md is read.
"""

import os
import shutil
from pathlib import Path

import kernel_policy
import numpy as np
import pytest

SOURCE = os.environ.get("HYBRIDSIM_KERNEL_SOURCE")

pytestmark = [
    pytest.mark.skipif(not SOURCE, reason="HYBRIDSIM_KERNEL_SOURCE names no kernel tree"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    policy = Path(str(SOURCE), "drivers", "md", "dm-cache-policy-smq.c")
    assert policy.exists(), f"HYBRIDSIM_KERNEL_SOURCE: no {policy}"
    library = kernel_policy.build(Path(SOURCE), tmp_path_factory.mktemp("smq"))
    return kernel_policy.Kernel(library)


def difference(policy, model, seed):
    plan = kernel_policy.plan(seed)
    rows = policy.rows(plan)
    at = model(plan).first_difference(rows)
    return None if at < 0 else f"seed {seed}, row {at}: {rows[at]} of {plan}"


@pytest.mark.parametrize(
    ("model", "sequences"),
    [
        (kernel_policy.Engine, 200),
        (kernel_policy.Reference, 50),
        pytest.param(kernel_policy.Engine, 10_000, marks=pytest.mark.long),
        pytest.param(kernel_policy.Reference, 10_000, marks=pytest.mark.long),
    ],
)
def test_answers_and_states_are_those_of_the_kernel(policy, model, sequences):
    found = [difference(policy, model, seed) for seed in range(sequences)]
    assert not any(found), next(text for text in found if text)


def test_the_sequences_reach_all_sizes_and_a_full_list_of_work(policy):
    plans = [kernel_policy.plan(seed) for seed in range(10_000)]
    assert {plan.blocks for plan in plans} == {
        *kernel_policy.SIZES,
        *kernel_policy.LARGE,
        *kernel_policy.FULL_LIST,
    }
    called: set[int] = set()
    most = 0
    for plan in plans[:300]:
        state = np.zeros(plan.state_room, np.int64)
        called |= set(np.unique(policy.rows(plan, state)[:, 0]).tolist())
        most = max(most, int(state[kernel_policy.PENDING].sum()))
    assert called == set(range(10))
    assert most == 4096


def test_a_difference_is_found(policy):
    plan = kernel_policy.plan(0)
    rows = policy.rows(plan)
    at = int(np.flatnonzero(rows[:, 0] == kernel_policy.STATE)[0])
    rows[at, 3] += 1
    for model in (kernel_policy.Engine, kernel_policy.Reference):
        assert model(plan).first_difference(rows) == at
