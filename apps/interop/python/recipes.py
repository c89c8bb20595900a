"""Runs every recipe of kazoo. Prints only at points whose order the recipe guarantees."""

import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.barrier import Barrier, DoubleBarrier
from kazoo.recipe.cache import TreeCache
from kazoo.recipe.counter import Counter
from kazoo.recipe.election import Election
from kazoo.recipe.lease import NonBlockingLease
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock
from kazoo.recipe.party import Party, ShallowParty
from kazoo.recipe.partitioner import SetPartitioner
from kazoo.recipe.queue import LockingQueue, Queue
from kazoo.recipe.watchers import ChildrenWatch, DataWatch, PatientChildrenWatch
import datetime

address = sys.argv[1]
wait = 20


def line(*parts):
    print(*parts, flush=True)


def client():
    zk = KazooClient(hosts=address, timeout=10)
    zk.start(timeout=15)
    return zk


clients = [client() for _ in range(3)]
a, b, c = clients


def until(what, condition):
    deadline = time.time() + wait
    while not condition():
        if time.time() > deadline:
            line("TIMEOUT", what)
            return
        time.sleep(0.01)
    line("reached", what)


def in_threads(*calls):
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(wait)
        if thread.is_alive():
            line("TIMEOUT of a thread")


# Lock: at most one holder
inside, most, turns = [0], [0], [0]


def holder(zk, name):
    def go():
        for _ in range(5):
            with Lock(zk, "/lock", name):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                turns[0] += 1
                inside[0] -= 1

    return go


in_threads(*[holder(zk, f"h{i}") for i, zk in enumerate(clients)])
line("lock", most[0], turns[0])
lock = Lock(a, "/lock", "owner")
line("acquire", lock.acquire(timeout=5))
line("second does not", Lock(b, "/lock", "second").acquire(blocking=False))
until("contenders", lambda: lock.contenders() == ["owner"])
lock.release()
with ReadLock(a, "/rw"):
    line("second reader", ReadLock(b, "/rw").acquire(timeout=5))
semaphore = [Semaphore(zk, "/semaphore", max_leases=2) for zk in clients]
line("semaphore", [s.acquire(blocking=False) for s in semaphore])
line("lease holders", len(semaphore[0].lease_holders()))
semaphore[0].release()
line("semaphore again", semaphore[2].acquire(timeout=5))

# Election: one leader at a time, each client once
led = []
elections = [Election(zk, "/election", f"e{i}") for i, zk in enumerate(clients)]
in_threads(*[lambda e=e, i=i: e.run(lambda: led.append(i)) for i, e in enumerate(elections)])
line("election", sorted(led))

# Barrier
barrier = Barrier(a, "/barrier")
barrier.create()
passed = []
waiter = threading.Thread(target=lambda: passed.append(Barrier(b, "/barrier").wait(wait)), daemon=True)
waiter.start()
line("barrier holds", Barrier(c, "/barrier").wait(0.2))
line("barrier removed", barrier.remove())
waiter.join(wait)
line("barrier passed", passed)

# Double barrier
together = []


def enter(zk):
    def go():
        double = DoubleBarrier(zk, "/double", 3)
        double.enter()
        together.append("in")
        double.leave()

    return go


in_threads(*[enter(zk) for zk in clients])
line("double barrier", together)

# Queues
queue = Queue(a, "/queue")
for value in (b"one", b"two", b"three"):
    queue.put(value)
queue.put(b"first", priority=10)
line("queue", len(queue), [Queue(b, "/queue").get() for _ in range(4)], queue.get())
locking = LockingQueue(a, "/locking")
locking.put_all([b"1", b"2", b"3"])
locking.put(b"0", priority=1)
other = LockingQueue(b, "/locking")
line("locking queue", locking.get(timeout=5), other.get(timeout=5), locking.holds_lock(), other.holds_lock())
line("consume", locking.consume(), other.release(), other.get(timeout=5), other.consume(), len(locking))

# Counter
counters = [Counter(zk, "/counter") for zk in clients]


def add(counter):
    def go():
        for _ in range(10):
            counter.__add__(1)

    return go


in_threads(*[add(counter) for counter in counters])
line("counter", counters[0].value)
counters[1] -= 5
line("counter", counters[2].value)

# Party
parties = [Party(zk, "/party", f"p{i}") for i, zk in enumerate(clients)]
for party in parties:
    party.join()
line("party", sorted(parties[0]), len(parties[1]))
parties[2].leave()
line("party", sorted(parties[0]))
shallow = [ShallowParty(zk, "/shallow", f"p{i}") for i, zk in enumerate(clients)]
for party in shallow:
    party.join()
line("shallow party", sorted(shallow[0]))

# SetPartitioner
shares = []


def partition(zk, name):
    def go():
        partitioner = SetPartitioner(zk, "/partition", set(range(6)), identifier=name, time_boundary=1)
        deadline = time.time() + wait
        while time.time() < deadline:
            if partitioner.failed:
                shares.append("failed")
                return
            if partitioner.release:
                partitioner.release_set()
            elif partitioner.acquired:
                if len(list(partitioner)) == 2:
                    shares.append(sorted(partitioner))
                    ready.wait(wait)
                    partitioner.finish()
                    return
                partitioner.wait_for_acquire(0.05)
                time.sleep(0.02)
            elif partitioner.allocating:
                partitioner.wait_for_acquire(0.1)

    return go


ready = threading.Barrier(3)
in_threads(*[partition(zk, f"part{i}") for i, zk in enumerate(clients)])
line("partition", sorted(shares))

# Watches
a.ensure_path("/watched")
values, lists = [], []
DataWatch(a, "/watched/data")(lambda data, stat: values.append(data))
ChildrenWatch(a, "/watched")(lambda children: lists.append(sorted(children)))
until("first call", lambda: values == [None] and lists == [[]])
b.create("/watched/data", b"1")
until("created", lambda: values[-1] == b"1" and lists[-1] == ["data"])
b.set("/watched/data", b"2")
until("set", lambda: values[-1] == b"2")
b.delete("/watched/data")
until("deleted", lambda: values[-1] is None and lists[-1] == [])
line("watched", values, lists)
patient = PatientChildrenWatch(a, "/watched", time_boundary=0.1).start()
line("patient", patient.get(timeout=wait)[0])

# TreeCache
a.ensure_path("/tree/x/y")
cache = TreeCache(a, "/tree")
cache.start()
until("cached", lambda: cache.get_children("/tree/x") is not None and "y" in cache.get_children("/tree/x"))
b.create("/tree/x/y/z", b"deep")
until("cache sees z", lambda: cache.get_data("/tree/x/y/z") is not None and cache.get_data("/tree/x/y/z").data == b"deep")
b.set("/tree/x/y/z", b"new")
until("cache sees new", lambda: cache.get_data("/tree/x/y/z").data == b"new")
b.delete("/tree/x", recursive=True)
until("cache is empty", lambda: not cache.get_children("/tree"))
cache.close()

# Lease
lease = NonBlockingLease(a, "/lease", datetime.timedelta(seconds=30), identifier="one")
line("lease", bool(lease), bool(NonBlockingLease(b, "/lease", datetime.timedelta(seconds=30), identifier="two")))

for zk in clients:
    zk.stop()
    zk.close()
line("end")
