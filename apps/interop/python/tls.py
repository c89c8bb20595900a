"""Runs operations over TLS with several certificates and prints a line for each."""

import sys

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import make_acl

address, folder = sys.argv[1:]


def open_client(certificate):
    files = {"certfile": f"{folder}/{certificate}", "keyfile": f"{folder}/{certificate}"} if certificate else {}
    client = KazooClient(
        hosts=address, timeout=10, use_ssl=True, verify_certs=True, ca=f"{folder}/authority.pem", **files
    )
    client.start(timeout=15)
    return client


def step(name, call):
    try:
        print(name, "->", call(), flush=True)
    except KazooException as error:
        print(name, "!!", type(error).__name__, flush=True)


alice = open_client("alice.pem")
odd = open_client("odd.pem")
nobody = open_client(None)

step("auth", lambda: alice.create("/auth", b"", acl=[make_acl("auth", "", all=True)]))
step("what auth stands for", lambda: alice.get_acls("/auth")[0])
name = alice.get_acls("/auth")[0][0].id.id
step("odd auth", lambda: odd.create("/odd", b"", acl=[make_acl("auth", "", read=True)]))
step("what odd auth stands for", lambda: odd.get_acls("/odd")[0])
step("no auth", lambda: nobody.create("/none", b"", acl=[make_acl("auth", "", all=True)]))
step("by name", lambda: nobody.create("/named", b"for alice", acl=[make_acl("x509", name, all=True)]))
for who, client in (("alice", alice), ("odd", odd), ("nobody", nobody)):
    step(f"{who} reads", lambda: client.get("/named")[0])
    step(f"{who} writes", lambda: client.set("/named", b"x").version)
    step(f"{who} looks at the list", lambda: client.get_acls("/named")[0])
step("sealed", lambda: odd.create("/sealed", b"", acl=[make_acl("x509", "CN=somebody", all=True)]))
step("alice opens what is sealed", lambda: alice.get("/sealed")[0])
step("odd opens what is sealed", lambda: odd.get("/sealed")[0])
step("alice offers it again", lambda: alice.add_auth("x509", ""))
step("large", lambda: len(alice.create("/large", b"x" * 900_000) and alice.get("/large")[0]))
for i in range(200):
    alice.create_async("/large/n-", b"y" * 1000, sequence=True)
step("many", lambda: len(alice.get_children("/large")))

ids = sys.stdin.read().split("\0")
for i, one in enumerate(ids):
    step(f"id {one!r}", lambda: alice.create(f"/id{i}", b"", acl=[make_acl("x509", one, all=True)]))

for client in (alice, odd, nobody):
    client.stop()
print("end", flush=True)
