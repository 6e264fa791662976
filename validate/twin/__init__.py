"""The simulated twin of a real run: the same requests, on a machine calibrated without its cache.

    record      what a result folder tells, in the terms of a twin
    recorded    the folders that `validate run` writes
    foreign     folders of runs that others made (kernel-caches of the reference data)
    folders     which folders are runs
    begin, pace when the load began, on the clock of the samples, and how fast it was
    calibrate, fast     device models from runs on the bare devices
    simulate    the twin: a scenario and what it measures
    warm        runs on a cache that another run has filled

It stands on hybridsim and knows nothing of guests, devices and how a run was made.
"""
