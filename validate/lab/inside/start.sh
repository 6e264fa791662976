# Process 1 of the guest after the switch to its root: runs the agent, then powers off.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C PYTHONUTF8=1 PYTHONDONTWRITEBYTECODE=1
export DM_DISABLE_UDEV=1 # there is no udev: libdevmapper creates the nodes itself
b=/bin/busybox
for m in /tmp /run /dev/shm; do $b mkdir -p $m; $b mount -t tmpfs tmpfs $m; done
$b mount -t debugfs debugfs /sys/kernel/debug; $b mount -t tracefs tracefs /sys/kernel/tracing
$b mkdir -p /run/lock /dev/pts; $b mount -t devpts devpts /dev/pts
$b ip link set lo up
ulimit -n 65536
echo "LAB-UP $(uname -r) $($b cut -d' ' -f1 /proc/uptime)"
python3 -s /job/agent.py || echo "LAB-ERROR the agent failed with $?"
echo "LAB-DONE $($b cut -d' ' -f1 /proc/uptime)"
$b poweroff -f
