"""TOML written by users (scenarios, workloads, sweeps): parsing, errors with place and fix."""
