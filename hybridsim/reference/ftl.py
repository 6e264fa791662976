"""Data placement and garbage collection of a drive (2.8.3)."""

from collections import Counter

from hybridsim.foundation.machine_parameters import FlashParameters


class Block:
    """A flash block: the logical unit at each place written, None where it is invalid."""

    def __init__(self) -> None:
        self.units: list[int | None] = []

    @property
    def valid(self) -> int:
        """The number of valid units."""
        return sum(unit is not None for unit in self.units)


class Mapping:
    """A mapping with one write frontier and greedy garbage collection."""

    def __init__(self, parameters: FlashParameters) -> None:
        self.parameters = parameters
        self.where: dict[int, int] = {}
        self.blocks = [Block() for _ in range(parameters.blocks)]
        self.frontier: int | None = 0  # None: full and collected
        self.free = list(range(1, parameters.blocks))
        self.debt: Counter[int] = Counter()  # by die
        self.placed = self.moved = 0
        if parameters.filled:
            for unit in range(parameters.mapped_units):
                self.append(unit)
            if self.needs_frontier():
                self.frontier = self.free.pop(0)

    def needs_frontier(self) -> bool:
        """Whether the frontier is full."""
        return self.frontier is None or self.is_full(self.frontier)

    def is_full(self, block: int) -> bool:
        """Whether a block is written completely."""
        return len(self.blocks[block].units) == self.parameters.block_units

    def write(self, unit: int) -> int:
        """Write a unit; return its new place."""
        while self.needs_frontier() and len(self.free) < 2:
            self.collect()
        self.forget(unit)
        self.placed += 1
        return self.append(unit)

    def forget(self, unit: int) -> None:
        """Invalidate the place of a unit."""
        at = self.where.pop(unit, None)
        if at is not None:
            block, place = divmod(at, self.parameters.block_units)
            self.blocks[block].units[place] = None

    def append(self, unit: int) -> int:
        """Write a unit at the frontier; return its place."""
        if self.frontier is None or self.is_full(self.frontier):
            self.frontier = self.free.pop(0)
        block = self.blocks[self.frontier]
        at = self.frontier * self.parameters.block_units + len(block.units)
        block.units.append(unit)
        self.where[unit] = at
        return at

    def collect(self) -> None:
        """Collect the full block with fewest valid units."""
        p = self.parameters
        full = [block for block in range(p.blocks) if self.is_full(block)]
        victim = min(full, key=lambda block: self.blocks[block].valid)  # the first of equals
        for unit in self.blocks[victim].units:
            if unit is not None:
                at = self.append(unit)
                self.debt[at // p.program_units % p.dies] += (
                    p.read_ns + p.program_ns
                ) // p.program_units
                self.moved += 1
        self.blocks[victim] = Block()
        if victim == self.frontier:
            self.frontier = None
        self.free.append(victim)
        first = victim * p.block_units // p.program_units
        for each in range(min(p.block_units // p.program_units, p.dies)):
            self.debt[(first + each) % p.dies] += p.erase_ns
