"""Generated loads of servers that no rule was tuned on, besides the judged half.

All of them were written before any was replayed and before the constants were fitted that were in
use when they were first looked at (27 November 2026).  Each is made by two seeds.  Some go on as
they began, in some something begins or moves on that a capture of the first 30 % does not show.
Once rules have been tuned on them they belong to decision_loads.py, and others take their place.
A line is what follows gen: on a command line.
"""

from __future__ import annotations

UNSEEN_REQUESTS = 28_000

UNSEEN = {
    "spool": (  # mail: written, synced, read once soon; and mailboxes
        "hot-spot,span=1GiB,hot=2%,share=85%,where=start,every=4s,moved=25%,"
        "size=4k/50:16k/35:64k/15,read=45%,rate=65,flush_every=4,requests={n}"
        "+zipf,at=2GiB,span=6GiB,theta=1.0,size=16k,read=70%,rate=45"
    ),
    "builds": (  # sources and tools are read in bursts, objects written
        "hot-spot,span=3GiB,hot=15%,share=90%,size=4k/50:32k/50,read=97%,rate=20,"
        "burst_every=50s,burst_lasts=14s,burst_rate=220,requests={n}"
        "+sequential,at=4GiB,span=3GiB,streams=6,run=2MiB,read=10%,size=16k,rate=3,"
        "burst_every=50s,burst_lasts=15s,burst_rate=90"
    ),
    "cameras": (  # many streams are stored, one is looked at
        "sequential,span=24GiB,streams=24,run=128MiB,read=0%,size=128k,rate=65,requests={n}"
        "+sequential,span=24GiB,run=64MiB,size=128k,rate=8"
    ),
    "logons": (  # desktops in waves
        "zipf,span=4GiB,theta=0.9,size=4k/40:32k/60,read=85%,rate=30,"
        "burst_every=70s,burst_lasts=12s,burst_rate=320,requests={n}"
        "+hot-spot,at=5GiB,span=3GiB,hot=10%,share=60%,size=4k,read=20%,rate=35"
    ),
    "broker": (  # partitions are appended to; a reader that lags behind comes and goes
        "sequential,span=12GiB,streams=8,run=256MiB,read=0%,size=64k,rate=60,requests={n}"
        "+sequential,span=12GiB,streams=2,run=256MiB,size=64k,rate=35,begin=60s,end=190s"
    ),
    "metrics": (  # appended, compacted each minute; the newest are on screens
        "sequential,span=256MiB,read=0%,size=4k/30:16k/70,rate=45,requests={n}"
        "+hot-spot,at=1GiB,span=10GiB,hot=1%,share=85%,where=start,every=20s,moved=10%,size=32k,"
        "read=100%,rate=50"
        "+sequential,at=1GiB,span=10GiB,streams=2,run=48MiB,size=256k,read=50%,rate=1,"
        "burst_every=60s,burst_lasts=8s,burst_rate=80"
    ),
    "dedup": (  # a backup's index, and its containers
        "zipf,span=2GiB,unit=4k,theta=0.4,size=4k,read=90%,rate=90,requests={n}"
        "+sequential,at=3GiB,span=20GiB,read=0%,size=256k,rate=25"
    ),
    "git": (
        "zipf,span=5GiB,unit=256k,theta=0.95,size=16k/60:64k/40,read=96%,rate=80,requests={n}"
        "+zipf,at=6GiB,span=200MiB,unit=4k,theta=1.0,size=4k,read=70%,rate=25"
        "+sequential,at=7GiB,span=4GiB,run=24MiB,size=128k,read=40%,rate=6"
    ),
    "cdn": (
        "zipf,span=16GiB,unit=4MiB,theta=1.0,size=256k/70:1m/30,align=256k,read=92%,rate=38,"
        "requests={n}+zipf,at=20GiB,span=1GiB,theta=1.1,size=32k,read=96%,rate=45"
    ),
    "spills": (  # scans, and temporary files that are written and read back
        "sequential,span=10GiB,streams=3,run=128MiB,size=256k,rate=35,requests={n}"
        "+hot-spot,at=12GiB,span=2GiB,hot=5%,share=85%,where=start,every=6s,moved=50%,size=64k,"
        "read=50%,rate=45"
    ),
    "night": (  # orders by day, a batch over all of them later
        "zipf,span=4GiB,unit=16k,theta=0.9,size=8k,read=75%,rate=80,requests={n}"
        "+sequential,at=8GiB,span=300MiB,read=0%,size=4k,rate=25,flush_every=2"
        "+sequential,span=4GiB,size=128k,read=80%,rate=60,begin=150s,end=210s"
    ),
    "lsm": (  # of many levels, whose filters let few reads through; a log, compactions
        "zipf,span=6GiB,unit=4k,theta=0.75,size=4k,read=100%,rate=80,requests={n}"
        "+sequential,at=7GiB,span=128MiB,size=4k/50:32k/50,read=0%,rate=30"
        "+sequential,span=6GiB,streams=4,run=16MiB,size=64k,read=50%,rate=4,"
        "burst_every=35s,burst_lasts=4s,burst_rate=180"
    ),
    "thin": (  # four virtual machines; one of them writes where nothing was before
        "hot-spot,span=800MiB,hot=12%,share=85%,read=60%,rate=30,requests={n}"
        "+zipf,at=1GiB,span=2GiB,theta=1.0,size=8k,read=80%,rate=25"
        "+random,at=4GiB,span=3GiB,size=64k,align=64k,read=10%,rate=10"
        "+hot-spot,at=8GiB,span=2GiB,hot=5%,share=90%,read=35%,size=4k,rate=8,"
        "burst_every=55s,burst_lasts=6s,burst_rate=160"
    ),
    "photos": (  # small ones by popularity, large ones hardly twice
        "zipf,span=12GiB,unit=32k,theta=0.85,size=16k,read=98%,rate=75,requests={n}"
        "+zipf,at=14GiB,span=20GiB,unit=2MiB,theta=0.6,size=1m,align=1m,read=85%,rate=7"
        "+sequential,at=36GiB,span=64MiB,size=4k,read=0%,rate=10,flush_every=1"
    ),
    "epochs": (  # samples of a training in random order, again and again; checkpoints
        "random,span=900MiB,size=128k,align=128k,read=100%,rate=60,requests={n}"
        "+sequential,at=2GiB,span=4GiB,size=1m,read=0%,rate=0.5,"
        "burst_every=80s,burst_lasts=6s,burst_rate=40"
    ),
    "homes": (  # folders of users; a scan for viruses later
        "hot-spot,span=8GiB,hot=3%,share=70%,every=60s,moved=15%,size=4k/40:32k/60,read=72%,"
        "rate=75,requests={n}+sequential,span=8GiB,size=256k,rate=30,begin=170s"
    ),
    "search": (  # threads that wait for their reads
        "zipf,span=3GiB,unit=16k,theta=0.9,size=16k,read=97%,depth=8,rate=240,requests={n}"
    ),
    "imaging": (  # studies are stored; the last ones are looked at, old ones now and then
        "sequential,span=30GiB,streams=4,run=64MiB,size=256k,read=25%,rate=30,requests={n}"
        "+hot-spot,span=30GiB,hot=1%,share=60%,where=start,every=15s,moved=20%,size=256k,"
        "read=100%,rate=22"
    ),
    "bookings": (  # six clerks
        "hot-spot,span=2GiB,hot=20%,share=70%,size=8k,read=50%,depth=6,rate=140,requests={n}"
    ),
    "sessions": "zipf,span=1GiB,unit=4k,theta=1.1,size=4k,read=35%,rate=105,requests={n}",
}  # fmt: skip
