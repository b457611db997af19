"""Who may include whom: src/ held against the table in ARCHITECTURE.md."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = r"([a-z]+(?:, [a-z]+)*)"
ENTRY = re.compile(rf"{ROOMS} +-> {ROOMS}")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def table():
    """room -> the rooms named beside it, from the fenced block that has arrows."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", (ROOT / "ARCHITECTURE.md").read_text(), re.S | re.M)
    block = next(b for b in blocks if "->" in b)
    doors = {}
    for left, right in ENTRY.findall(block):
        for room in left.split(", "):
            doors.setdefault(room, set()).update(right.split(", "))
    return doors


def reach(room, doors):
    """What a room may include: itself, base, its rooms and theirs."""
    seen, todo = {room, "base"}, [room]
    while todo:
        for other in doors.get(todo.pop(), ()):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def includes():
    for path in sorted((ROOT / "src").glob("*/**/*.[ch]")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if found and "/" in found[1]:
                yield path.relative_to(ROOT), number, path.relative_to(ROOT).parts[1], found[1]


def wrong(found, doors):
    """One sentence for each include that goes through a wall."""
    for path, number, room, header in found:
        allowed = reach(room, doors)
        if header.split("/")[0] not in allowed:
            yield (f'{path}:{number}: {room} may not include "{header}"; '
                   f"its doors are {', '.join(sorted(allowed - {room}))}")


def test_the_table_names_rooms_that_exist():
    doors = table()
    named = set(doors).union(*doors.values())
    assert named and all((ROOT / "src" / room).is_dir() for room in named), sorted(named)


def test_the_table_is_strict():
    doors = table()
    assert list(wrong([("x.c", 1, "supervise", "store/store.h")], doors))
    assert list(wrong([("x.c", 1, "base", "model/job.h")], doors))
    assert list(wrong([("x.c", 1, "plan", "driver/driver.h")], doors))
    assert not list(wrong([("x.c", 1, "daemon", "model/job.h")], doors))


def test_every_include_goes_through_a_door():
    faults = list(wrong(includes(), table()))
    assert not faults, "\n" + "\n".join(faults)
