"""Whoever may connect to the socket must not be able to hurt the daemon through it."""
import contextlib
import pathlib
import random
import resource
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
    try:
        s.sendall(b"GET /v1/status HTTP/1.1\\r\\nHost: divvy\\r\\n\\r\\n")
    except BrokenPipeError:
        pass  # it was refused before it had asked, and may read why
    got.append(s.recv(65536).split()[1].decode())
    held.append(s)
print(got.count("200"), got.count("429"))
"""


def memory_mib(box):
    status = pathlib.Path(f"/proc/{box.divvy.daemon.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


@contextlib.contextmanager
def crowd(path, count):
    """So many connections, open until the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + 200), hard), hard))
    with contextlib.ExitStack() as held:
        yield [held.enter_context(dial(path)) for _ in range(count)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_at_once_are_all_answered(box, path):
    before = memory_mib(box)
    with crowd(path, 1000) as all_of_them:
        for connection in all_of_them:
            connection.sendall(GET)
        assert answers(path)
        for connection in all_of_them:
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert memory_mib(box) - before < 64
    assert answers(path)


def test_slow_readers_hold_little_and_keep_nobody_waiting(box, path):
    """Each asks for a long list and reads nothing of it."""
    for _ in range(20):
        box.divvy.submit("--name", "n" * 60, "--output", "/dev/null", "--", "true")
    harness.until(lambda: box.divvy.json("status")["jobs"]["completed"] == 20, "they are done")
    before = memory_mib(box)
    with crowd(path, 200) as all_of_them:
        for connection in all_of_them:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(10):
                connection.sendall(b"GET /v1/jobs?state=all HTTP/1.1\r\nHost: divvy\r\n\r\n")
        assert answers(path)
        assert memory_mib(box) - before < 128
    assert answers(path)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_100_mb_is_refused_and_not_kept(box, path, chunked):
    before = memory_mib(box)
    piece = b"x" * 65536
    with dial(path) as connection:
        connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: divvy\r\n" +
                           (b"Transfer-Encoding: chunked\r\n\r\n" if chunked else
                            b"Content-Length: 104857600\r\n\r\n"))
        most = 0
        try:
            for i in range(1600):
                connection.sendall(b"10000\r\n" + piece + b"\r\n" if chunked else piece)
                if i % 200 == 0:
                    assert answers(path)
                    most = max(most, memory_mib(box))
            if chunked:
                connection.sendall(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # it does not listen any more; what it said is there to read
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")
    assert most - before < 16
    assert answers(path)


def test_half_bodies_of_many_are_bounded(box, path):
    before = memory_mib(box)
    with crowd(path, 200) as all_of_them:
        for connection in all_of_them:
            connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: divvy\r\nContent-Length: 1000000\r\n\r\n")
            connection.sendall(b" " * 999_999)
        assert answers(path)
        assert memory_mib(box) - before < 160
        refused = 0
        for connection in all_of_them:
            connection.sendall(b" ")
            said = connection.recv(65536)
            refused += said.startswith(b"HTTP/1.1 429 ")
            assert said.startswith((b"HTTP/1.1 429 ", b"HTTP/1.1 400 ")), said
        assert refused > 100
    assert answers(path)


@pytest.mark.root
def test_a_user_who_submits_without_end_is_told_so_and_others_go_on(box, machine):
    box.divvy.configure("user_limits: {pending: 5}\ncards: {default: {pool: queue, mode: auto}}\n")
    box.divvy.start()
    taken = 0
    for _ in range(12):  # two run, five wait
        done = box.divvy.run("submit", "--gpus", "1", "--output", "/dev/null", "--", "sleep", "60",
                             user=12345, cwd="/tmp", check=False)
        if done.returncode != 0:
            break
        taken += 1
    assert 5 <= taken <= 7 and "5" in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert box.divvy.run("submit", "--output", "/dev/null", "--", "true", user=12346, cwd="/tmp").stdout


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
