"""The lab: a guest of our own, in which a real kernel cache runs on simulated disks, without root.

places, packages, image, setup   what is fetched and built, and where it is kept
processes, job, guest            a guest from power-on to its results
inside/                          what runs in it
"""
