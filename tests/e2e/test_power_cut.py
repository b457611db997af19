"""A power cut, as a disk sees it: what was not brought to it is not in the copy that is mounted afterwards."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import harness
from test_supervise import Attempt

# How it is made, and how a copy of it is mounted beside it.
KINDS = {"ext4": ("loop", "mkfs.ext4", "-q", "-F"),
         "ext4 without a journal": ("loop", "mkfs.ext4", "-q", "-F", "-O", "^has_journal"),
         "xfs": ("loop,nouuid", "mkfs.xfs", "-q", "-f")}
SBIN = f"{os.environ['PATH']}:/usr/sbin:/sbin"

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to mount a file")


class Disk:
    """A file system in a file. What the kernel has not written yet is not in a copy of that."""

    def __init__(self, folder, kind):
        self.options, *words = KINDS[kind]
        program = shutil.which(words[0], path=SBIN)
        if not program:
            pytest.skip(f"{words[0]} is not here")
        self.folder = folder
        self.image = folder / "disk"
        with open(self.image, "wb") as file:
            file.truncate(320 << 20)
        subprocess.run([program, *words[1:], self.image], check=True, stdout=subprocess.DEVNULL)
        self.image.chmod(0o644)
        self.top = folder / "mounted"
        self.mounted = []
        self.mount(self.image, self.top)

    def mount(self, image, at):
        at.mkdir()
        done = subprocess.run(["mount", "-o", self.options, image, at], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            pytest.skip(f"a file cannot be mounted here: {done.stderr.strip()}")
        self.mounted.append(at)

    def sync(self):
        subprocess.run(["sync", "-f", self.top], check=True)

    def after_cut(self, copy):
        """The top of what a machine finds that was cut off when the copy was made."""
        at = self.folder / f"found-{copy.name}"
        self.mount(copy, at)
        return at / "a"

    def end(self):
        for at in reversed(self.mounted):
            subprocess.run(["umount", at], check=True)


@pytest.fixture(params=KINDS)
def disk(request):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dv-cut-", dir=os.environ.get("DIVVY_TEST_DIR", "/tmp")))
    folder.chmod(0o755)
    made = None
    try:
        made = Disk(folder, request.param)
        yield made
    finally:
        if made:
            made.end()
        shutil.rmtree(folder)


def test_start_and_end_are_on_the_disk_when_they_count(disk):
    """The job copies the disk as its first deed: that it has started is there by then."""
    top = disk.top / "a"
    top.mkdir()
    top.chmod(0o755)
    attempt = Attempt(top)
    disk.sync()
    begun, ended = disk.folder / "begun", disk.folder / "ended"
    begun.touch()
    begun.chmod(0o666)
    attempt.write("cp", "--sparse=always", str(disk.image), str(begun), job={"output": "/dev/null"})
    attempt.dir.rename(attempt.jobs / ".new-7.1")  # as divvyd makes it
    (attempt.jobs / ".new-7.1").rename(attempt.dir)
    assert attempt.start().finish()["kind"] == "exited"
    subprocess.run(["cp", "--sparse=always", disk.image, ended], check=True)
    found = disk.after_cut(begun)
    assert json.loads((found / "jobs/7.1/started").read_text())["supervisor"]["pid"] == attempt.process.pid
    assert not (found / "jobs/7.1/exit").exists()
    found = disk.after_cut(ended)
    assert json.loads((found / "jobs/7.1/exit").read_text())["job"]["kind"] == "exited"
