"""Programs of others, fetched by scripts/fetch-peers, on a simulated machine."""
import os
import pathlib
import shutil

import pytest

import harness

PEERS = pathlib.Path(os.environ.get("DIVVY_PEERS") or harness.SOURCE / "build/peers").resolve()


def why_missing(name):
    """What fetch-peers wrote about it."""
    if not (PEERS / "missing").exists():
        return "not fetched: run scripts/check --peers"
    for line in (PEERS / "missing").read_text().splitlines():
        if line.startswith(f"{name}: "):
            return line[len(name) + 2:]
    return f"scripts/fetch-peers left none in {PEERS}"


def program(name):
    """Path of a program of others; skips the test when there is none."""
    found = PEERS / "bin" / name
    if found.exists():
        return found
    installed = shutil.which(name)
    if installed:
        return pathlib.Path(installed)
    pytest.skip(f"{name}: {why_missing(name)}")


@pytest.fixture
def nvidia_smi(machine):
    """Runs nvidia-smi on the simulated machine."""
    path = program("nvidia-smi")
    return lambda *words, **more: harness.run(path, *words, env=machine.env, **more)


@pytest.fixture
def sliced(machine, nvidia_smi):
    """The machine with MIG on on its first card, and 3g, 2g and 2g cut there."""
    nvidia_smi("-i", "0", "-mig", "1")
    nvidia_smi("mig", "-i", "0", "-cgi", "9,14,14", "-C")
    return machine


@pytest.fixture
def nvtop_path():
    return program("nvtop")


@pytest.fixture
def library_path():
    """Folder for LD_LIBRARY_PATH: what nvtop links besides libc."""
    return next(iter((PEERS / "root/usr/lib").glob("*-linux-gnu")), None)


def python_env(machine, package, folder, brings):
    if not (folder / brings).exists():
        pytest.skip(f"{package}: {why_missing(package)}")
    return {**machine.env, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def nvidia_ml_py(machine):
    """Environment in which python3 imports PyPI's pynvml."""
    return python_env(machine, "nvidia-ml-py", PEERS / "python", "pynvml.py")


@pytest.fixture
def gpustat(machine):
    return python_env(machine, "gpustat", PEERS / "python", "gpustat")


@pytest.fixture
def debian_pynvml(machine):
    """Environment in which python3 imports Debian's old pynvml."""
    return python_env(machine, "python3-pynvml", PEERS / "root/usr/lib/python3/dist-packages",
                      "pynvml.py")
