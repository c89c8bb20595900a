"""Sends one reconfig by kazoo: address, credentials, then joining, leaving and the new members, each empty for none."""

import sys

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

address, credentials, joining, leaving, members = sys.argv[1:]
client = KazooClient(hosts=address, auth_data=[("digest", credentials)])
client.start(timeout=30)
try:
    data, _ = client.reconfig(joining or None, leaving or None, members or None)
    print(data.decode())
except KazooException as error:
    print("refused: " + type(error).__name__)
finally:
    client.stop()
    client.close()
