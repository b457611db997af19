"""Manual pages: the formatter has nothing to say about them (lintian asks the same)."""
import pathlib
import re
import shutil
import subprocess

import pytest

PAGES = sorted((pathlib.Path(__file__).resolve().parents[2] / "man").glob("*.[1-8]"))


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not here")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_understood(page):
    said = subprocess.run(["groff", "-mandoc", "-ww", "-z", "-Tutf8", "-K", "utf8", page],
                          capture_output=True, text=True, check=True)
    assert said.stderr == ""


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not here")
@pytest.mark.parametrize("page, lines", [
    ("divvy.1", ("(‘-’ is standard input)", "‘trap : USR1’.", "10 to 15")),
    ("divvy.yaml.5", ('("exec-opts": ["native.cgroupdriver=cgroupfs"] in',)),
])
def test_quotes_stand_around_what_is_quoted(page, lines):
    done = subprocess.run(["groff", "-mandoc", "-Tutf8", "-K", "utf8", "-P-cbou", "-rLL=78n",
                           PAGES[0].parent / page], capture_output=True, text=True, check=True)
    words = " ".join(done.stdout.replace("\u2010\n", "").split())
    for line in lines:
        assert line in words


def test_every_verb_has_a_synopsis():
    """What `divvy --help` lists stands in divvy(1) with its options."""
    source = PAGES[0].parents[1] / "src/cli/verbs.c"
    verbs = set(re.findall(r'^\s*\{ "([a-z-]+)", verb_', source.read_text(), re.M))
    synopsis = (PAGES[0].parent / "divvy.1").read_text().split(".Sh DESCRIPTION")[0]
    told = set(re.findall(r"[a-z-]+", " ".join(re.findall(r"^\.Cm (.*)$", synopsis, re.M))))
    assert "replay" in verbs and not verbs - told - {"help", "version"}
