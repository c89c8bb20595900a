"""Authenticates by SASL with kazoo and prints a transcript. Arguments: address, then user:password or `-` for each login."""

import sys
import threading

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException
from kazoo.retry import KazooRetry
from kazoo.security import make_acl

address, logins = sys.argv[1], sys.argv[2:]


def attempt(name, call):
    try:
        print(name, "->", call(), flush=True)
    except KazooException as error:
        print(name, "!!", type(error).__name__, flush=True)


def serves(client):
    """Starts a client and returns whether it is served. A refused login closes the client, which its threads notice at
    different times: either `start` fails or the first request."""
    try:
        client.start(timeout=20)
        client.exists("/")
        return True
    except (KazooException, client.handler.timeout_exception):
        return False


def acls(client, path):
    return sorted(f"{acl.id.scheme}:{acl.id.id}:{acl.perms}" for acl in client.get_acls(path)[0])


for number, login in enumerate(logins):
    options = {}
    if login != "-":
        user, password = login.split(":", 1)
        options["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
    # No retries, so that a refused login fails at once.
    once = KazooRetry(max_tries=0)
    client = KazooClient(hosts=address, connection_retry=once, command_retry=once, **options)
    lost = threading.Event()
    client.add_listener(lambda state: lost.set() if state == KazooState.LOST else None)
    print("login", login, flush=True)
    if not serves(client):
        print("refused", lost.wait(20), client.connected)
        client.stop()
        client.close()
        continue
    own = f"/own-{number}"
    attempt("own", lambda: client.create(own, b"x", acl=[make_acl("auth", "", all=True)]))
    attempt("own list", lambda: acls(client, own))
    attempt("list of bob", lambda: client.create(f"/bob-{number}", acl=[make_acl("sasl", "bob", all=True)]))
    attempt("no name", lambda: client.create("/none", acl=[make_acl("sasl", "a@b@c", all=True)]))
    for other in range(number + 1):
        attempt(f"own-{other}", lambda: client.get(f"/own-{other}")[0])
        attempt(f"bob-{other}", lambda: client.get(f"/bob-{other}")[0])
        attempt(f"set own-{other}", lambda: client.set(f"/own-{other}", b"y").version)
    client.stop()
    client.close()
print("end")
