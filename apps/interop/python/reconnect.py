"""Keeps a session, a lock and a watch while the test kills and restarts the server. Continues on a line of input."""

import sys

from kazoo.client import KazooClient, KazooState
from kazoo.recipe.lock import Lock
from kazoo.recipe.watchers import DataWatch

states = []
# By default kazoo waits twice as long after each failure, up to a minute: too long where the server takes seconds to start.
retry = {"max_tries": -1, "max_delay": 1}
zk = KazooClient(hosts=sys.argv[1], timeout=100, connection_retry=retry, command_retry=retry)
zk.add_listener(lambda state: states.append(state))
zk.start(timeout=60)
session = zk.client_id
zk.create("/r", b"before")
zk.create("/r/e", b"", ephemeral=True)
lock = Lock(zk, "/r-lock", "holder")
lock.acquire()
values = []
DataWatch(zk, "/r")(lambda data, stat: values.append(data))
print("ready", flush=True)
sys.stdin.readline()

print("value", zk.retry(zk.get, "/r")[0], flush=True)
print("same session", zk.client_id == session, flush=True)
print("ephemeral node", zk.retry(zk.exists, "/r/e") is not None, flush=True)
print("lock", lock.contenders(), flush=True)
zk.retry(zk.set, "/r", b"after")
while not values or values[-1] != b"after":
    zk.sync("/r")
print("watched", values, flush=True)
print("states", [s for s in states if s == KazooState.LOST], states[-1], flush=True)
lock.release()
zk.stop()
zk.close()
print("end", flush=True)
