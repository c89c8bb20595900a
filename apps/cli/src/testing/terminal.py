"""Runs a program in a pseudo-terminal. Reads steps as lines of JSON and answers each with one line: whether it succeeded
and the output since the last answer."""

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
# Limit of the wait for the echo of a key, since some keys have none.
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
    """Reads output until it matches the pattern, or without a pattern until the program exits."""
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


def read_next(timeout):
    """Reads the next output, if there is any within the timeout."""
    global shown, ended
    ready, _, _ = select.select([terminal], [], [], timeout)
    if not ready or ended:
        return False
    try:
        shown += os.read(terminal, 65536)
        return True
    except OSError:
        ended = True
        return False


def press(key):
    """Types one key after the output has settled; keys in one write would count as pasted."""
    while read_next(0):
        pass
    os.write(terminal, key.encode())
    timeout = KEY_S
    while read_next(timeout):
        timeout = QUIET_S


for line in sys.stdin:
    step = json.loads(line)
    is_ok = True
    answer = {}
    if "type" in step:
        for key in re.findall(r"\x1b\[[A-Z]|[\s\S]", step["type"]):
            press(key)
    elif "paste" in step:
        os.write(terminal, step["paste"].encode())
    elif "expect" in step:
        is_ok = read(step["expect"])
    elif "resize" in step:
        resize(terminal, *step["resize"])
    elif "signal" in step:
        os.kill(child, getattr(signal, step["signal"]))
    elif "state" in step:
        flags = termios.tcgetattr(terminal)[3]
        answer["echoes"] = bool(flags & termios.ECHO) and bool(flags & termios.ICANON)
    elif "end" in step:
        is_ok = read(None)
        _, status = os.waitpid(child, 0)
        answer["code"] = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    answer["isOk"] = is_ok
    if "expect" in step or "end" in step:
        answer["shown"] = shown.decode(errors="replace")
        shown = b""
    print(json.dumps(answer), flush=True)
