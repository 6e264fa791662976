"""Generated loads of kinds that servers have, all of them for tuning; see decision_traces.

They were written before any of them was replayed, and none after a look at the judged families.
Their rates are such that the default array serves most of them without a cache, some just so.
A line is what follows gen: on a command line.
"""

from __future__ import annotations

LOADS = {
    "database": (  # data files, checkpoints, and a redo log
        "zipf,span=6GiB,theta=0.95,size=8k,read=75%,rate=70,requests={n}"
        "+sequential,at=8GiB,span=512MiB,read=0%,size=4k/70:16k/30,rate=40",
        "hot-spot,span=3GiB,hot=8%,share=75%,theta=0.7,size=16k,read=85%,rate=60,requests={n}"
        "+random,span=3GiB,size=16k,read=0%,rate=2,burst_every=40s,burst_lasts=4s,burst_rate=150"
        "+sequential,at=4GiB,span=256MiB,read=0%,size=512/30:4k/70,align=512,rate=50,flush_every=4",
    ),
    "warehouse": (  # scans of large tables
        "sequential,span=12GiB,streams=2,run=256MiB,size=256k,rate=60,requests={n}"
        "+zipf,at=12GiB,span=1GiB,theta=1.0,size=16k,read=95%,rate=40",
        "sequential,span=1536MiB,size=256k,rate=70,requests={n}"
        "+sequential,at=2GiB,span=2GiB,read=30%,size=128k,run=64MiB,rate=20",
    ),
    "boot-storm": (  # virtual machines that start together
        "hot-spot,span=6GiB,hot=6%,share=95%,where=start,size=4k/30:16k/40:64k/30,read=100%,rate=15,"
        "burst_every=45s,burst_lasts=5s,burst_rate=500,requests={n}"
        "+random,at=8GiB,span=4GiB,size=4k,read=20%,rate=25",
        "zipf,span=1GiB,theta=0.8,size=16k/60:64k/40,read=98%,rate=20,"
        "burst_every=40s,burst_lasts=4s,burst_rate=700,requests={n}"
        "+hot-spot,at=1GiB,span=8GiB,hot=4%,share=80%,read=15%,size=4k,rate=40",
    ),
    "files": (
        "zipf,span=10GiB,unit=1MiB,theta=0.85,size=16k/30:64k/40:256k/30,read=80%,rate=60,"
        "requests={n}+hot-spot,at=12GiB,span=256MiB,hot=10%,share=90%,size=4k,read=50%,rate=40",
        "hot-spot,span=6GiB,hot=3%,share=65%,where=start,every=10s,moved=10%,size=64k,read=70%,"
        "rate=70,requests={n}"
        "+sequential,at=8GiB,span=4GiB,streams=3,run=16MiB,read=50%,size=128k,rate=25",
    ),
    "backup": (  # in the capture and later; later only
        "zipf,span=4GiB,theta=0.9,read=80%,rate=70,requests={n}"
        "+sequential,span=4GiB,size=256k,rate=90,begin=30s,end=80s"
        "+sequential,span=4GiB,size=256k,rate=90,begin=200s,end=250s",
        "hot-spot,span=2GiB,hot=12%,share=85%,read=65%,rate=80,requests={n}"
        "+sequential,span=2GiB,size=512k,rate=40,begin=3m,end=5m",
    ),
    "logs": (
        "sequential,span=4GiB,streams=16,run=64MiB,read=0%,size=4k/50:16k/50,rate=140,requests={n}",
        "sequential,span=8GiB,streams=6,run=256MiB,read=0%,size=32k,rate=70,requests={n}"
        "+random,span=8GiB,size=16k,read=100%,rate=30",
    ),
    "queue": (  # workers that wait for each other's requests, and think
        "zipf,span=2GiB,theta=1.0,read=70%,depth=4,rate=120,requests={n}",
        "hot-spot,span=6GiB,hot=5%,share=70%,read=40%,size=8k,depth=16,rate=200,requests={n}",
        "iometer,span=1GiB,access=4096/100/67/100/20/1,depth=8,rate=200,requests={n}",
        "random,span=512MiB,read=0%,depth=2,rate=80,requests={n}",
    ),
    "rates": tuple(  # from an array that idles to one that just manages
        "hot-spot,span=3GiB,hot=10%,share=80%,theta=0.6,read=60%,requests={n}," + f"rate={rate}"
        for rate in (40, 130, 170, 220)
    ),
    "shifts": (  # of what is in use
        "hot-spot,span=6GiB,hot=3%,share=90%,every=40s,moved=100%,read=75%,rate=100,requests={n}",
        "zipf,span=1GiB,theta=0.9,read=80%,rate=90,end=60s,requests={n}"
        "+zipf,at=1GiB,span=1GiB,theta=0.9,read=80%,rate=90,begin=60s,end=150s"
        "+zipf,at=2GiB,span=1GiB,theta=0.9,read=80%,rate=90,begin=150s,end=270s"
        "+zipf,at=3GiB,span=1GiB,theta=0.9,read=80%,rate=90,begin=270s",
    ),
    "diurnal": (  # days in small
        "zipf,span=5GiB,theta=0.9,read=70%,rate=25,"
        "burst_every=60s,burst_lasts=20s,burst_rate=200,requests={n}",
        "hot-spot,span=2GiB,hot=8%,share=85%,read=85%,rate=60,"
        "burst_every=30s,burst_lasts=10s,burst_rate=160,requests={n}"
        "+sequential,span=2GiB,size=256k,rate=3,begin=15s,"
        "burst_every=30s,burst_lasts=4s,burst_rate=100",
    ),
    "series": (  # what is appended is what is read
        "hot-spot,span=8GiB,hot=1%,share=92%,where=start,every=5s,moved=5%,read=45%,size=8k,"
        "rate=100,requests={n}",
        "sequential,span=8GiB,streams=4,read=0%,size=16k,rate=60,requests={n}"
        "+hot-spot,span=8GiB,hot=2%,share=70%,where=start,every=15s,moved=3%,read=100%,size=32k,"
        "rate=50",
    ),
    "objects": (
        "zipf,span=24GiB,unit=1MiB,theta=0.9,size=256k/60:1m/40,align=256k,read=95%,rate=45,"
        "requests={n}",
        "zipf,span=6GiB,unit=256k,theta=0.75,size=128k,align=128k,read=70%,rate=60,requests={n}",
    ),
    "compaction": (  # of a key-value store
        "zipf,span=4GiB,theta=0.95,unit=16k,size=4k,read=100%,rate=90,requests={n}"
        "+sequential,span=4GiB,streams=2,run=32MiB,size=128k,read=50%,rate=5,"
        "burst_every=20s,burst_lasts=2s,burst_rate=200",
    ),
    "desktops": (  # of virtual machines
        "hot-spot,span=10GiB,hot=4%,share=75%,read=25%,size=4k/70:16k/30,rate=90,requests={n}",
        "random,span=700MiB,read=20%,size=4k,rate=60,requests={n}"
        "+zipf,at=1GiB,span=2GiB,theta=1.2,read=90%,rate=60",
    ),
    "metadata": (
        "zipf,span=300MiB,unit=4k,theta=0.8,size=4k,read=50%,rate=110,requests={n}"
        "+random,at=1GiB,span=16GiB,size=64k,read=70%,rate=10",
    ),
    "cycles": (  # scans of the same data again
        "sequential,span=900MiB,size=64k,rate=100,requests={n}",
        "sequential,span=256MiB,size=64k,streams=3,rate=90,read=90%,requests={n}"
        "+random,at=1GiB,span=4GiB,read=80%,rate=20",
    ),
    "archive": (
        "sequential,span=16GiB,streams=2,run=512MiB,read=5%,size=256k,rate=60,requests={n}"
        "+random,span=16GiB,size=32k,read=100%,rate=15",
    ),
    "dirty": (  # writes that fill a cache sooner or later
        "random,span=6GiB,read=30%,size=4k,rate=60,requests={n}",
        "hot-spot,span=5GiB,hot=20%,share=60%,read=45%,size=8k,rate=70,requests={n}",
        "zipf,span=3GiB,theta=0.7,read=10%,size=16k,rate=55,requests={n}",
    ),
    "swap": (
        "hot-spot,span=1GiB,hot=20%,share=75%,every=30s,moved=8%,read=50%,size=4k/60:32k/40,"
        "rate=90,requests={n}",
    ),
}  # fmt: skip
