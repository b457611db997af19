#!/usr/bin/python3
"""kill_one.py STORY [POINT[:PASS]...] - one telling, as test_kill.py does it; prints what passed."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent),
                str(pathlib.Path(__file__).resolve().parents[1])]
from test_kill import tell  # noqa: E402

story, *arms = sys.argv[1:]
print(*tell(story, *((p, int(n or 1)) for p, _, n in (arm.partition(":") for arm in arms))), sep="\n")
