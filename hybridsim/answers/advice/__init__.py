"""What `advise` finds out before it replays, and what else it compares.

activity      when requests were outstanding, and which process issued them
hot_spot      how uneven accesses are, and whether what takes most of them moves
alternatives  what else could be bought, and for how much
"""
