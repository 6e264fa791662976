"""The simulated twin of a real run: the same requests, on a machine calibrated without its cache.

    record      a real run, with the values that its twin needs
    recorded    reads result folders of `validate`
    foreign     reads result folders of others (kernel-caches of the reference data)
    folders     finds result folders and selects their reader
    begin, pace time of the load's first request, and its pace
    calibrate, fast     device models from runs on the bare devices
    simulate    simulates the twin
    warm        runs on a cache that another run has filled

It uses hybridsim and result folders only, not the code that produces a run.
"""
