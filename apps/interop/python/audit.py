"""Writes that succeed and that fail, for a comparison of audit logs."""
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import make_acl, make_digest_acl


def attempt(request, *args, **options):
    try:
        request(*args, **options)
    except KazooException:
        pass  # The audit log says that it failed.


def connect():
    client = KazooClient(hosts=sys.argv[1])
    client.start(30)
    return client


everyone = make_acl("world", "anyone", all=True)
client = connect()
attempt(client.create, "/app", b"x")
attempt(client.create, "/app", b"x")
attempt(client.create, "/app/e", b"", ephemeral=True)
attempt(client.create, "/app/es-", b"", ephemeral=True, sequence=True)
attempt(client.create, "/app/s-", b"", sequence=True, include_data=True)
attempt(client.create, "/none/s-", b"", sequence=True)
attempt(client.set, "/app", b"y")
attempt(client.set, "/app", b"y", version=77)
attempt(client.set_acls, "/app", [everyone])
attempt(client.set_acls, "/none", [everyone])
attempt(client.delete, "/none")
attempt(client.delete, "/app/e")
for version in (1, 9):
    multi = client.transaction()
    multi.create("/app/m", b"1")
    multi.set_data("/app/m", b"22")
    multi.check("/app/m", version)
    multi.delete("/app/m")
    multi.commit()
client.add_auth("digest", "bob:secret")
attempt(client.set, "/app", b"z")
attempt(client.create, "/app/own", b"", acl=[make_digest_acl("bob", "secret", all=True)])
stranger = connect()
attempt(stranger.set, "/app/own", b"")
stranger.stop()
client.stop()
