"""Whoever may connect to the socket must not be able to hurt the daemon through it."""
import random
import socket
import subprocess
import sys

import pytest

import harness

GET = b"GET /v1/status HTTP/1.1\r\nHost: divvy\r\n\r\n"


@pytest.fixture
def path(box, machine):
    box.divvy.start()
    return str(box.divvy.root / "run/divvy/divvyd.sock")


def dial(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(harness.PATIENCE)
    connection.connect(path)
    return connection


def answers(path):
    with dial(path) as connection:
        connection.sendall(GET)
        return connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_noise_is_survived(path):
    noise = random.Random(4711)
    for _ in range(200):
        with dial(path) as connection:
            piece = noise.randbytes(noise.randrange(1, 4096))
            if noise.random() < 0.5:
                piece = GET[:noise.randrange(len(GET))] + piece
            try:
                connection.sendall(piece)
            except OSError:
                pass  # it hung up: that is an answer, too
    assert answers(path)


def test_deep_and_odd_bodies_are_refused(path):
    bodies = [b"[" * 100_000, b'{"a":' * 50_000, b'"\\ud800"', b"1e999", b"\0", b"null", b"[]",
              b'{"name":"a","name":"b"}', b'{"name":"\\u0000","cwd":"/","argv":["a"]}']
    for body in bodies:
        with dial(path) as connection:
            connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: divvy\r\nContent-Length: %d\r\n\r\n"
                               % len(body) + body)
            assert connection.recv(65536).startswith(b"HTTP/1.1 400 "), body[:40]
    assert answers(path)


def test_two_requests_on_one_connection(path):
    with dial(path) as connection:
        for _ in range(3):
            connection.sendall(GET)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_half_requests_keep_nobody_waiting(path):
    held = [dial(path) for _ in range(100)]
    for connection in held:
        connection.sendall(GET[:20])
    assert answers(path)
    for connection in held:
        connection.close()


CROWD = """
import socket, sys
got, held = [], []
for _ in range(140):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(sys.argv[1])
    s.sendall(b"GET /v1/status HTTP/1.1\\r\\nHost: divvy\\r\\n\\r\\n")
    got.append(s.recv(65536).split()[1].decode())
    held.append(s)
print(got.count("200"), got.count("429"))
"""


@pytest.mark.root
def test_one_user_cannot_take_all_connections(box, path):
    crowd = subprocess.run(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups",
                            sys.executable, "-c", CROWD, path], capture_output=True, text=True,
                           timeout=harness.PATIENCE)
    assert crowd.stdout.split() == ["128", "12"], crowd.stderr
    assert answers(path)


@pytest.mark.root
def test_the_message_cannot_say_who_sends_it(box, path):
    """Root asks for a job; another user cannot end it, whatever he claims to be."""
    job = box.divvy.submit("--output", "/dev/null", "--", "sleep", "60")
    claim = f"""
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(b"POST /v1/jobs/{job}/cancel HTTP/1.1\\r\\nHost: divvy\\r\\nX-Uid: 0\\r\\nAuthorization: "
          b"Basic cm9vdDo=\\r\\nContent-Length: 0\\r\\n\\r\\n")
print(s.recv(65536).split()[1].decode())
"""
    told = subprocess.run(["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups",
                           sys.executable, "-c", claim, path], capture_output=True, text=True,
                          timeout=harness.PATIENCE)
    assert told.stdout.strip() == "403", told
    box.divvy.run("cancel", job)
