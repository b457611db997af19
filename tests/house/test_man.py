"""Manual pages: the formatter has nothing to say about them (lintian asks the same)."""
import pathlib
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
