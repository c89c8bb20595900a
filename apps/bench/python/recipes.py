"""Runs one measurement with kazoo and prints one figure. Arguments: address, work, amount, path, seconds."""

import os
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.cache import TreeCache, TreeEvent

address, work, amount, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
clients = []


def connect():
    client = KazooClient(hosts=address, timeout=20)
    client.start(timeout=15)
    clients.append(client)
    return client


def locks(seconds):
    for _ in range(amount):
        connect()
    until = time.monotonic() + seconds
    turns = []

    def contend(client):
        own = 0
        lock = client.Lock(path)
        while time.monotonic() < until:
            with lock:
                if time.monotonic() < until:
                    own += 1
        turns.append(own)

    threads = [threading.Thread(target=contend, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(turns) / seconds


def election():
    times = []

    def contend(client, won):
        end = threading.Event()

        def lead():
            won.set()
            end.wait()

        threading.Thread(target=lambda: client.Election(path).run(lead), daemon=True).start()

    leader, led = connect(), threading.Event()
    contend(leader, led)
    led.wait()
    for _ in range(amount):
        following, won = connect(), threading.Event()
        contend(following, won)
        while len(following.get_children(path)) < 2:
            time.sleep(0.005)
        time.sleep(0.05)
        began = time.monotonic()
        threading.Thread(target=leader.stop, daemon=True).start()
        won.wait()
        times.append((time.monotonic() - began) * 1000)
        clients.remove(leader)
        leader = following
    return sorted(times)[amount // 2]


def queue():
    producer, consumer = connect().LockingQueue(path), connect().LockingQueue(path)

    def consume():
        for _ in range(amount):
            consumer.get()
            consumer.consume()

    return through(producer, consume)


def take():
    producer, consumer = connect().Queue(path), connect().Queue(path)

    def consume():
        left = amount
        # get() returns None on an empty queue, so this polls.
        while left > 0:
            left -= consumer.get() is not None

    return through(producer, consume)


def through(producer, consume):
    thread = threading.Thread(target=consume)
    began = time.monotonic()
    thread.start()
    for _ in range(amount):
        producer.put(bytes(100))
    thread.join()
    return amount / (time.monotonic() - began)


def cache():
    ready = threading.Event()
    tree = TreeCache(connect(), path)
    tree.listen(lambda event: ready.set() if event.event_type == TreeEvent.INITIALIZED else None)
    began = time.monotonic()
    tree.start()
    ready.wait()
    return (time.monotonic() - began) * 1000


works = {"election": election, "queue": queue, "take": take, "cache": cache}
figure = locks(int(sys.argv[5])) if work == "locks" else works[work]()
print("figure", figure, flush=True)
os._exit(0)
