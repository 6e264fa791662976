"""What-if: a planned set of replays, and the surface between them that answers at once.

axes       what may be changed: the cache, its size, the SSD, the disks, the load
surface    interpolation between the replays, with an error measured by leaving replays out
planning   where to replay next: spread out first, then where the surface is least sure
exploring  `explore`: runs the replays and returns an Exploration
"""
