"""divvy submit --batch: a job of every line of a file."""
import json
import os
import socket
import threading

import harness


def lines(box, *words):
    path = box.folder / "jobs"
    path.write_text("".join(f"{line}\n" for line in words))
    return path


def test_each_line_becomes_a_job_and_runs(box):
    box.machine.up("a100-80gb:1")
    box.divvy.configure("mode_hold: 0s\ncards: {default: {pool: queue, mode: auto}}\n")
    box.divvy.start()
    path = lines(box, "# three, and a comment", "sh -c 'echo \"$V\" > one'", "",
                 "--name second --env V=2 -- sh -c 'echo \"$V\" > two'", "--slice 1g.10gb -- true")
    done = box.divvy.run("submit", "--time", "5m", "--output", "o-%j", "--batch", path, env={**box.divvy.env, "V": "1"})
    ids = [int(word) for word in done.stdout.split()]
    assert len(ids) == 3 and ids == sorted(ids)
    for job in ids:
        assert box.divvy.wait(job)["state"] == "completed"
    shown = [box.divvy.json("show", job) for job in ids]
    assert [job["name"] for job in shown] == ["sh", "second", "true"]
    assert [job["limit_us"] for job in shown] == [300_000_000] * 3
    assert (box.folder / "one").read_text() == "1\n"
    assert (box.folder / "two").read_text() == "2\n"  # its own environment, and not the shared one


def test_hundreds_go_in_several_requests_and_keep_their_order(box):
    box.machine.up("a100-80gb:1")
    box.divvy.start()
    path = lines(box, *(f"--name n{i} -- true" for i in range(600)))
    done = box.divvy.run("--json", "submit", "--hold", "--batch", path)
    ids = json.loads(done.stdout)["ids"]
    assert len(ids) == 600
    assert box.divvy.json("show", ids[599])["name"] == "n599"
    box.divvy.kill()  # each was answered, so each is there
    box.divvy.start()
    assert box.divvy.json("status")["jobs"]["pending"] == 600


def test_standard_input_is_a_file_as_well(box):
    box.machine.up("a100-80gb:1")
    box.divvy.start()
    with open(lines(box, "true", "true")) as file:
        done = box.divvy.run("submit", "--hold", "--batch", "-", stdin=file)
    assert len(done.stdout.split()) == 2
    with open(lines(box, "true", "'true")) as file:
        done = box.divvy.run("submit", "--batch", "-", stdin=file, check=False)
    assert done.returncode == 2 and "standard input:2:1: this quote" in done.stderr


def test_a_slip_refuses_the_whole_file_before_anything_is_sent(box):
    box.machine.up("a100-80gb:1")
    box.divvy.start()
    for line, words in (("--nmae x -- true", "jobs:2: there is no option '--nmae'; did you mean --name?"),
                        ("--time 2h", "jobs:2: where the command begins is not clear"),
                        ("--time 2h --", "jobs:2: there is no command behind --"),
                        ("--time 0 -- true", "jobs:2: --time: a limit of 0 leaves no time to run"),
                        ("echo $HOME", "jobs:2:6: variables and commands are not expanded")):
        done = box.divvy.run("submit", "--batch", lines(box, "true", line), check=False)
        assert done.returncode == 2 and words in done.stderr and not done.stdout, done.stderr
    for more in (("--", "true"), ("--wait",)):
        assert box.divvy.run("submit", "--batch", lines(box, "true"), *more, check=False).returncode != 0
    impossible = box.divvy.run("submit", "--batch", lines(box, "true", "--gpus 9 -- true"), check=False)
    assert impossible.returncode == 1 and "jobs:2: " in impossible.stderr and not impossible.stdout
    assert box.divvy.json("status")["jobs"]["pending"] == 0


def test_a_limit_that_is_used_up_ends_it_and_says_where(box):
    box.machine.up("a100-80gb:1")
    box.divvy.configure("accounts:\n  lab: {users: ['*'], limits: {pending: 5}}\n")
    box.divvy.start()
    done = box.divvy.run("submit", "--hold", "--account", "lab", "--batch", lines(box, *["true"] * 8), check=False)
    assert done.returncode == 1 and len(done.stdout.split()) == 5
    assert "5 jobs of" in done.stderr and "are queued, up to line 5, and 3 are not:" in done.stderr
    assert "jobs:6:" in done.stderr, done.stderr
    assert box.divvy.json("status")["jobs"]["pending"] == 5


def answers_once(path):
    """In place of divvyd: takes one request as it should, and is gone while it has the second."""
    listener = socket.socket(socket.AF_UNIX)
    path.parent.mkdir(parents=True)
    listener.bind(str(path))
    listener.listen()

    def serve():
        connection, _ = listener.accept()
        for ids in range(1, 257), None:
            request = b""
            while b"\r\n\r\n" not in request or len(request) < request.index(b"\r\n\r\n") + 4 + int(
                    request.split(b"Content-Length: ")[1].split(b"\r\n")[0]):
                request += connection.recv(1 << 16)
            if ids:
                body = json.dumps({"ids": list(ids), "notes": [None] * 256, "refused": None}).encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                   b"Content-Length: %d\r\n\r\n" % len(body) + body)
        connection.close()
        listener.close()
    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_what_is_known_of_each_line_is_told_when_the_daemon_dies(box):
    path = lines(box, "# first", *["true"] * 600)
    server = answers_once(box.divvy.root / "run/divvy/divvyd.sock")
    done = box.divvy.run("submit", "--batch", path, env={**os.environ, "DIVVY_ROOT": str(box.divvy.root)}, check=False)
    server.join()
    assert done.returncode == 1 and len(done.stdout.split()) == 256
    assert "256 jobs of" in done.stderr and "are queued, up to line 257; of the jobs of lines 258 to 513" in done.stderr
    assert "all are queued or none is, and which is not known; what follows them is not queued:" in done.stderr
    assert "closed the connection without an answer; look with 'divvy queue'" in done.stderr


def test_a_file_of_another_system_is_read_as_well(box):
    box.machine.up("a100-80gb:1")
    box.divvy.start()
    path = box.folder / "jobs"
    path.write_bytes(b"\xef\xbb\xbf--name one -- true a\r\n\r\n# two\r\ntrue b")
    box.divvy.run("submit", "--hold", "--batch", path)
    shown = [box.divvy.json("show", job) for job in (1, 2)]
    assert [job["argv"] for job in shown] == [["true", "a"], ["true", "b"]]
    assert shown[0]["name"] == "one"
