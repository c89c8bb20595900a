"""Runs every operation of kazoo and prints a line for each, without ids, zxids and times."""

import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import ACL, Id, make_acl, make_digest_acl

address = sys.argv[1]
lock = threading.Lock()


def line(*parts):
    with lock:
        print(*parts, flush=True)


def stat(s):
    owner = "session" if s.ephemeralOwner else 0
    return (
        f"v={s.version} cv={s.cversion} av={s.aversion} owner={owner} length={s.dataLength} children={s.numChildren}"
        f" new={s.czxid == s.mzxid} times={s.ctime <= s.mtime}"
    )


def show(value):
    if hasattr(value, "czxid"):
        return stat(value)
    if isinstance(value, tuple) and len(value) == 2 and hasattr(value[1], "czxid"):
        return f"{show(value[0])} {stat(value[1])}"
    if isinstance(value, list):
        return "[" + ", ".join(sorted(show(v) for v in value)) + "]"
    if isinstance(value, Exception):
        return type(value).__name__
    return str(value)


def step(name, call):
    try:
        line(name, "->", show(call()))
    except KazooException as error:
        line(name, "!!", type(error).__name__)
    except (TypeError, ValueError) as error:
        line(name, "!!", type(error).__name__, error)


class Events:
    """Collects the events of one watch and prints them in order when asked."""

    def __init__(self, name):
        self.name = name
        self.seen = []
        self.condition = threading.Condition()

    def __call__(self, event):
        with self.condition:
            self.seen.append(f"{event.type} {event.state} {event.path}")
            self.condition.notify()

    def expect(self, count):
        with self.condition:
            self.condition.wait_for(lambda: len(self.seen) >= count, timeout=5)
            line("events", self.name, self.seen)


def open_client(**options):
    client = KazooClient(hosts=address, timeout=10, **options)
    client.start(timeout=15)
    return client


zk = open_client()
other = open_client()

# Nodes
step("create", lambda: zk.create("/k", b"data"))
step("create again", lambda: zk.create("/k"))
step("create without parent", lambda: zk.create("/k/a/b"))
step("makepath", lambda: zk.create("/k/a/b", b"deep", makepath=True))
step("create with stat", lambda: zk.create("/k/s", b"x", include_data=True))
step("empty data", lambda: zk.create("/k/empty"))
step("get empty", lambda: zk.get("/k/empty"))
step("get", lambda: zk.get("/k"))
step("get missing", lambda: zk.get("/none"))
step("exists", lambda: zk.exists("/k"))
step("exists missing", lambda: zk.exists("/none"))
step("set", lambda: zk.set("/k", b"more"))
step("set wrong version", lambda: zk.set("/k", b"more", version=9))
step("set right version", lambda: zk.set("/k", b"", version=1))
step("children", lambda: zk.get_children("/k"))
step("children with stat", lambda: zk.get_children("/k", include_data=True))
step("delete parent", lambda: zk.delete("/k"))
step("delete wrong version", lambda: zk.delete("/k/s", version=4))
step("delete", lambda: zk.delete("/k/s", version=0))
step("delete missing", lambda: zk.delete("/k/s"))
step("unicode", lambda: zk.create("/k/\u00e4\u6f22", "\u00f6".encode()))
step("large", lambda: zk.create("/k/large", b"x" * 500_000))
step("get large", lambda: len(zk.get("/k/large")[0]))
step("sync", lambda: zk.sync("/k"))
step("ensure_path", lambda: zk.ensure_path("/k/e/f/g"))
step("ensure_path again", lambda: zk.ensure_path("/k/e/f/g"))
step("recursive delete", lambda: zk.delete("/k/e", recursive=True))

# Ephemeral and sequential nodes
step("ephemeral", lambda: zk.create("/k/eph", b"", ephemeral=True))
step("ephemeral stat", lambda: zk.exists("/k/eph"))
step("child of ephemeral", lambda: zk.create("/k/eph/c"))
step("sequence parent", lambda: zk.create("/q"))
step("sequence", lambda: [zk.create("/q/s-", b"", sequence=True) for _ in range(3)])
step("ephemeral sequence", lambda: zk.create("/q/", b"", sequence=True, ephemeral=True))
step("others see it", lambda: other.get_children("/q"))

# Transactions
def transaction(*adds):
    t = zk.transaction()
    for add in adds:
        add(t)
    return t.commit()


def results(values):
    return [show(v) for v in values]


step("transaction", lambda: " | ".join(results(transaction(
    lambda t: t.create("/t"),
    lambda t: t.create("/t/a", b"1"),
    lambda t: t.set_data("/t", b"2"),
    lambda t: t.check("/t", 1),
    lambda t: t.create("/t/s", sequence=True),
    lambda t: t.delete("/t/a"),
))))
step("failed transaction", lambda: " | ".join(results(transaction(
    lambda t: t.create("/t/x"),
    lambda t: t.check("/t", 77),
    lambda t: t.create("/t/y"),
))))
step("nothing of it", lambda: zk.get_children("/t"))
step("empty transaction", lambda: results(transaction()))

# Watches
data, child, absent, gone = Events("data"), Events("child"), Events("absent"), Events("gone")
step("watch data", lambda: zk.get("/t", watch=data))
step("watch children", lambda: zk.get_children("/t", watch=child))
step("watch absent", lambda: zk.exists("/t/new", watch=absent))
step("other sets", lambda: other.set("/t", b"by other"))
step("other sets again", lambda: other.set("/t", b"by other"))
step("other creates", lambda: other.create("/t/new"))
for events in (data, child, absent):
    events.expect(1)
step("watch to be deleted", lambda: zk.get("/t/new", watch=gone))
step("other deletes", lambda: other.delete("/t/new"))
gone.expect(1)

# ACLs and authentication
secret = make_digest_acl("bob", "pw", all=True)
step("acl", lambda: zk.get_acls("/t")[0])
step("create secret", lambda: zk.create("/secret", b"s", acl=[secret]))
step("read secret", lambda: zk.get("/secret"))
step("acl of secret, masked", lambda: zk.get_acls("/secret")[0])
step("auth", lambda: zk.add_auth("digest", "bob:pw"))
step("read secret with auth", lambda: zk.get("/secret"))
step("acl of secret", lambda: zk.get_acls("/secret")[0])
step("other reads secret", lambda: other.get("/secret"))
step("set acl", lambda: zk.set_acls("/secret", [secret, make_acl("world", "anyone", read=True)]))
step("set acl wrong version", lambda: zk.set_acls("/secret", [secret], version=5))
step("other reads it now", lambda: other.get("/secret"))
step("other writes it", lambda: other.set("/secret", b"x"))
step("invalid acl", lambda: zk.create("/bad", acl=[ACL(31, Id("nope", "x"))]))
step("auth acl", lambda: zk.create("/mine", acl=[make_acl("auth", "", all=True)]))
step("auth acl read", lambda: zk.get_acls("/mine")[0])
step("ip acl", lambda: zk.create("/ip", acl=[make_acl("ip", "127.0.0.0/8", read=True)]))
step("ip acl read", lambda: other.get("/ip"))
step("ip acl write", lambda: other.set("/ip", b""))
refused = open_client()
step("bad auth", lambda: refused.add_auth("nope", "x"))
refused.stop()
refused.close()

# Chroot
step("chroot node", lambda: zk.create("/root"))
rooted = KazooClient(hosts=address + "/root", timeout=10)
rooted.start(timeout=15)
step("chroot create", lambda: rooted.create("/in", b"x"))
step("chroot sequence", lambda: rooted.create("/in/s", b"x", sequence=True))
step("chroot children", lambda: zk.get_children("/root/in"))
rooted.stop()
rooted.close()

# Sessions
step("session id", lambda: zk.client_id is not None and len(zk.client_id[1]) == 16)
step("server version", lambda: len(zk.server_version()) >= 2)
step("command", lambda: zk.command(b"ruok"))
leaving = open_client()
step("leaving", lambda: leaving.create("/leaving", ephemeral=True))
events = Events("leaving")
step("watch leaving", lambda: zk.exists("/leaving", watch=events))
leaving.stop()
leaving.close()
events.expect(1)
step("left", lambda: zk.exists("/leaving"))

# Session resumption
first = open_client()
first.create("/resumed", ephemeral=True)
identity = first.client_id
second = KazooClient(hosts=address, timeout=10, client_id=identity)
second.start(timeout=15)
step("resumed with the same id", lambda: second.client_id[0] == identity[0])
step("its node", lambda: second.exists("/resumed"))
second.stop()
second.close()
step("its node is gone", lambda: zk.exists("/resumed"))
first.stop()
first.close()

zk.stop()
other.stop()
zk.close()
other.close()
line("end")
