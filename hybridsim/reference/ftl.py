"""Where a drive puts what is written, and how it gets free blocks again (2.8.3)."""

from collections import Counter

from hybridsim.reference.parameters import FlashParameters


class Block:
    """A block: the units that it holds by place, None where there is garbage or nothing yet."""

    def __init__(self) -> None:
        self.units: list[int | None] = []

    @property
    def valid(self) -> int:
        """How many units it holds that are not garbage."""
        return sum(unit is not None for unit in self.units)


class Mapping:
    """One frontier, and the block with least to move is collected first."""

    def __init__(self, parameters: FlashParameters) -> None:
        self.parameters = parameters
        self.where: dict[int, int] = {}
        self.blocks = [Block() for _ in range(parameters.blocks)]
        self.frontier: int | None = 0  # None: it was full and is collected
        self.free = list(range(1, parameters.blocks))
        self.debt: Counter[int] = Counter()  # by die
        self.placed = self.moved = 0
        if parameters.filled:
            for unit in range(parameters.mapped_units):
                self.append(unit)
            if self.needs_frontier():
                self.frontier = self.free.pop(0)

    def needs_frontier(self) -> bool:
        """Whether nothing can be put at the frontier."""
        return self.frontier is None or self.is_full(self.frontier)

    def is_full(self, block: int) -> bool:
        """Whether a block has been written to its end."""
        return len(self.blocks[block].units) == self.parameters.block_units

    def write(self, unit: int) -> int:
        """Give a unit a new place and return that."""
        while self.needs_frontier() and len(self.free) < 2:
            self.collect()
        self.forget(unit)
        self.placed += 1
        return self.append(unit)

    def forget(self, unit: int) -> None:
        """What a unit held is garbage from now on."""
        at = self.where.pop(unit, None)
        if at is not None:
            block, place = divmod(at, self.parameters.block_units)
            self.blocks[block].units[place] = None

    def append(self, unit: int) -> int:
        """Put a unit at the frontier."""
        if self.frontier is None or self.is_full(self.frontier):
            self.frontier = self.free.pop(0)
        block = self.blocks[self.frontier]
        at = self.frontier * self.parameters.block_units + len(block.units)
        block.units.append(unit)
        self.where[unit] = at
        return at

    def collect(self) -> None:
        """Free the block that holds least."""
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
