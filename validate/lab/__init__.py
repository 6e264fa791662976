"""The lab: a QEMU guest in which a real kernel cache runs on simulated disks, without root.

places, packages, image, setup   fetch, build and store the guest
processes, job, guest            run a guest from power-on to its results
inside/                          the programs in the guest
"""
