"""Writes through each member of an ensemble and reads at every other one."""

import sys

from kazoo.client import KazooClient

label, *addresses = sys.argv[1:]
clients = [KazooClient(hosts=address, timeout=20) for address in addresses]
for client in clients:
    client.start(timeout=30)
root = "/" + label
clients[0].create(root, b"root")
for number, client in enumerate(clients):
    client.sync(root)
    client.create("%s/m-" % root, str(number).encode(), sequence=True)
    client.create("%s/ephemeral-%d" % (root, number), ephemeral=True)
    transaction = client.transaction()
    transaction.create("%s/t-%d" % (root, number), b"t")
    transaction.set_data(root, b"by %d" % number)
    assert all(not isinstance(one, Exception) for one in transaction.commit()), "transaction"
views = []
for client in clients:
    client.sync(root)
    views.append((client.get(root)[0], sorted(client.get_children(root)), client.get(root)[1].mzxid))
assert all(view == views[0] for view in views), views
assert len(views[0][1]) == 3 * len(clients), views[0]
for client in clients:
    client.stop()
    client.close()
