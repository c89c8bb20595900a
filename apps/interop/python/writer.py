"""Writes one request after the other until its input ends, and prints what became of each, one JSON object a line.

Times are in milliseconds on the monotonic clock of the machine.
"""

import json
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException, OperationTimeoutError, SessionExpiredError

name, hosts, timeout = sys.argv[1], sys.argv[2], float(sys.argv[3])
# What says nothing of whether the write was done.
OPEN_ENDED = (ConnectionLoss, SessionExpiredError, OperationTimeoutError)

over = threading.Event()


def wait_for_end():
    sys.stdin.read()
    over.set()


def now():
    return time.monotonic_ns() / 1e6


def tell(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


client = KazooClient(hosts=hosts, timeout=timeout, randomize_hosts=True)
client.start(timeout=60)
for path in ("", "/created"):
    client.ensure_path("/%s%s" % (name, path))
client.ensure_path("/%s/counter" % name)
client.set("/%s/counter" % name, b"0")
threading.Thread(target=wait_for_end, daemon=True).start()
tell(ready=True)


def write(kind, number, act):
    began = now()
    try:
        stat = act().get(timeout=20)
        zxid = stat[1].czxid if kind == "created" else stat.mzxid
        tell(kind=kind, n=number, zxid=str(zxid), began=began, ended=now())
    except OPEN_ENDED + (client.handler.timeout_exception,):
        tell(kind=kind, n=number, unknown=True)
    except KazooException as error:
        tell(kind=kind, n=number, refused=repr(error))


number = 0
while not over.is_set():
    number += 1
    data = str(number).encode()
    write("created", number, lambda: client.create_async("/%s/created/%d" % (name, number), data, include_data=True))
    write("counted", number, lambda: client.set_async("/%s/counter" % name, data))
tell(sent=number)
# Nothing waits for a server that may be gone.
client.stop()
