"""The analyses of `advise` before it replays, and the alternatives it compares.

load          when requests were outstanding, which process issued them, and how uneven they are
alternatives  what the machine costs, and other machines that could be bought
"""
