"""Shares a queue, a counter, a barrier, a tree or a party with another client. Prints one line for each step."""

import sys

from kazoo.client import KazooClient
from kazoo.recipe.barrier import Barrier
from kazoo.recipe.counter import Counter
from kazoo.recipe.queue import LockingQueue, Queue

address, kind = sys.argv[1], sys.argv[2]
zk = KazooClient(hosts=address, timeout=10)
zk.start(timeout=15)
print("ready", flush=True)
sys.stdin.readline()

if kind == "queue":
    queue = LockingQueue(zk, "/queue")
    for n in range(20):
        queue.put(b"kazoo-%d" % n, priority=100 + n % 3)
    while True:
        value = queue.get(timeout=3)
        if value is None:
            break
        print("got", value.decode(), flush=True)
        queue.consume()
elif kind == "plain":
    queue = Queue(zk, "/plain")
    for n in range(20):
        queue.put(b"kazoo-%d" % n, priority=100 + n % 3)
    while True:
        value = queue.get()
        if value is None:
            break
        print("got", value.decode(), flush=True)
elif kind == "parties":
    parties = [zk.Party("/members", "kazoo"), zk.ShallowParty("/shallow", "kazoo")]
    for party in parties:
        party.join()
    for party in parties:
        print("members", *sorted(party), flush=True)
    sys.stdin.readline()
    for party in parties:
        party.leave()
elif kind == "counter":
    counter = Counter(zk, "/counter")
    for _ in range(50):
        counter += 1
elif kind == "barrier":
    Barrier(zk, "/barrier").create()
    print("created", flush=True)
    sys.stdin.readline()
    Barrier(zk, "/barrier").remove()
elif kind == "wait":
    print("through" if Barrier(zk, "/barrier").wait(20) else "stuck", flush=True)
elif kind == "tree":
    zk.ensure_path("/tree/a")
    zk.set("/tree/a", b"1")
    zk.create("/tree/b", b"2")
    zk.delete("/tree/a")
elif kind == "party":
    party = zk.Party("/party", "kazoo")
    party.join()
    print("joined", flush=True)
    sys.stdin.readline()
    party.leave()
print("done", flush=True)
zk.stop()
