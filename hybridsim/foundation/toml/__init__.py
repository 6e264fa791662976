"""TOML written by users (scenarios, workloads, sweeps): parsing, and errors with place and remedy."""
