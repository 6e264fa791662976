"""TOML that users write, as scenarios and workloads: where in it something is wrong, and how to
mend it.
"""
