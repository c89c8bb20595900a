"""Increments a counter without versions, under a lock that it shares with another client."""

import sys

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, Semaphore, WriteLock

address, rounds, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
zk = KazooClient(hosts=address, timeout=10)
zk.start(timeout=15)

if kind == "rw":
    write = WriteLock(zk, "/rw", "kazoo")
    # The ReadLock of kazoo 2.8 also waits for later writers, which wait for it: a deadlock.
    read = write
elif kind == "patterns":
    write = read = Lock(zk, "/lock", "kazoo", extra_lock_patterns=["lock-"])
elif kind == "semaphore":
    write = read = Semaphore(zk, "/permits", "kazoo", max_leases=1)
elif kind == "permits":
    # Two leases: each holder checks their number.
    write = read = Semaphore(zk, "/permits2", "kazoo", max_leases=2)
elif kind == "lock":
    write = read = Lock(zk, "/lock", "kazoo")


def increment():
    value = int(zk.get("/counter")[0])
    zk.set("/counter", str(value + 1).encode())


print("ready", flush=True)
sys.stdin.readline()
for _ in range(rounds):
    if kind == "election":
        zk.Election("/e", "kazoo").run(increment)
        continue
    if kind == "permits":
        with write:
            assert len(write.lease_holders()) <= 2
        continue
    with write:
        increment()
    with read:
        assert zk.get("/counter")[0] == zk.get("/counter")[0]
print("done", flush=True)
zk.stop()
