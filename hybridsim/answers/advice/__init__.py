"""The analyses of `advise` before it replays, and the alternatives it compares.

activity      when requests were outstanding, and which process issued them
hot_spot      how uneven accesses are, and whether the hottest pages change
alternatives  other machines that could be bought, and their prices
"""
