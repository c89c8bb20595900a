"""Runs a program in a terminal of its own. Steps come as lines of JSON, each is answered by one line: what the terminal
has shown since the last answer, or why a step failed."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

LIMIT_S = 20
# Keys of which nothing can be seen must not hold everything up.
KEY_S = 1
QUIET_S = 0.03


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
resize(terminal, 24, 80)
shown = b""
ended = False


def read(until):
    """Takes what the terminal shows until the pattern is there, or until the program has ended without a pattern."""
    global shown, ended
    deadline = time.monotonic() + LIMIT_S
    while until is None or not re.search(until, shown.decode(errors="replace")):
        if ended:
            return until is None
        ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            chunk = b""
        shown += chunk
        ended = chunk == b""
    return True


def take(patience):
    """Takes what the terminal shows next, if it does so in time."""
    global shown, ended
    ready, _, _ = select.select([terminal], [], [], patience)
    if not ready or ended:
        return False
    try:
        shown += os.read(terminal, 65536)
        return True
    except OSError:
        ended = True
        return False


def press(key):
    """Types one key as a person does: what came before is settled, and keys that come at once would count as pasted."""
    while take(0):
        pass
    os.write(terminal, key.encode())
    patience = KEY_S
    while take(patience):
        patience = QUIET_S


for line in sys.stdin:
    step = json.loads(line)
    fine = True
    answer = {}
    if "type" in step:
        for key in re.findall(r"\x1b\[[A-Z]|[\s\S]", step["type"]):
            press(key)
    elif "paste" in step:
        os.write(terminal, step["paste"].encode())
    elif "expect" in step:
        fine = read(step["expect"])
    elif "resize" in step:
        resize(terminal, *step["resize"])
    elif "signal" in step:
        os.kill(child, getattr(signal, step["signal"]))
    elif "state" in step:
        flags = termios.tcgetattr(terminal)[3]
        answer["echoes"] = bool(flags & termios.ECHO) and bool(flags & termios.ICANON)
    elif "end" in step:
        fine = read(None)
        _, status = os.waitpid(child, 0)
        answer["code"] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    answer["fine"] = fine
    if "expect" in step or "end" in step:
        answer["shown"] = shown.decode(errors="replace")
        shown = b""
    print(json.dumps(answer), flush=True)
