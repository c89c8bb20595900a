"""Writes sequentially until standard input closes, and prints the result of each write as a line of JSON.

Times are in milliseconds on the monotonic clock of the machine.
"""

import json
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException, OperationTimeoutError, SessionExpiredError

name, hosts, timeout = sys.argv[1], sys.argv[2], float(sys.argv[3])
# Errors after which the write may have been applied.
AMBIGUOUS = (ConnectionLoss, SessionExpiredError, OperationTimeoutError)

stopped = threading.Event()


def wait_for_close():
    sys.stdin.read()
    stopped.set()


def now():
    return time.monotonic_ns() / 1e6


def report(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


client = KazooClient(hosts=hosts, timeout=timeout, randomize_hosts=True)
client.start(timeout=60)
for path in ("", "/created"):
    client.ensure_path("/%s%s" % (name, path))
client.ensure_path("/%s/counter" % name)
client.set("/%s/counter" % name, b"0")
threading.Thread(target=wait_for_close, daemon=True).start()
report(ready=True)


def write(kind, number, act):
    began = now()
    try:
        stat = act().get(timeout=20)
        zxid = stat[1].czxid if kind == "created" else stat.mzxid
        report(kind=kind, n=number, zxid=str(zxid), began=began, ended=now())
    except AMBIGUOUS + (client.handler.timeout_exception,):
        report(kind=kind, n=number, unknown=True)
    except KazooException as error:
        report(kind=kind, n=number, refused=repr(error))


number = 0
while not stopped.is_set():
    number += 1
    data = str(number).encode()
    write("created", number, lambda: client.create_async("/%s/created/%d" % (name, number), data, include_data=True))
    write("counted", number, lambda: client.set_async("/%s/counter" % name, data))
report(sent=number)
# Without close(), which may wait for a server that is down.
client.stop()
