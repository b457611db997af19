"""docs/openapi.yaml against what divvyd answers, in both directions.

Every answer must be as its schema says, and may hold nothing that the schema
does not name; every path of the document is asked, and none that it lacks
exists in the routes that the tests know.
"""
import http.client
import json
import re
import socket

import pytest

import harness

yaml = pytest.importorskip("yaml", reason="needs python3-yaml")
DOCUMENT = yaml.safe_load((harness.SOURCE / "docs/openapi.yaml").read_text())
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool,
         "number": (int, float)}


class Api(http.client.HTTPConnection):
    """HTTP on the daemon's unix socket."""

    def __init__(self, path):
        super().__init__("divvy", timeout=harness.PATIENCE)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None):
        self.request(method, path, None if body is None else json.dumps(body))
        answer = self.getresponse()
        return answer.status, json.loads(answer.read())


def resolve(schema):
    while "$ref" in schema:
        node = DOCUMENT
        for key in schema["$ref"].removeprefix("#/").split("/"):
            node = node[key]
        schema = node
    return schema


def faults(value, schema, where):
    """What is wrong with a value, one sentence each. As much of OpenAPI 3.0 as the document uses."""
    schema = resolve(schema)
    if value is None:
        if not schema.get("nullable"):
            yield f"{where} is null"
        return
    for part in schema.get("allOf", ()):
        yield from faults(value, part, where)
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind == "integer" and value is True)):
        yield f"{where} is {value!r}, no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value!r}, none of {schema['enum']}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{where} is {value}, below {schema['minimum']}"
    if kind == "array":
        for i, item in enumerate(value):
            yield from faults(item, schema["items"], f"{where}[{i}]")
    if kind == "object":
        yield from object_faults(value, schema, where)


def object_faults(value, schema, where):
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where} lacks {name}"
    for name, item in value.items():
        if name in known:
            yield from faults(item, known[name], f"{where}.{name}")
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from faults(item, schema["additionalProperties"], f"{where}.{name}")
        else:
            yield f"{where}.{name} is not in the document"


def expect(api, method, template, body=None, status=200, query="", **fill):
    """Asks, and holds the answer against the document."""
    got, answer = api.ask(method, template.format(**fill) + query, body)
    assert got == status, answer
    responses = DOCUMENT["paths"][template][method.lower()]["responses"]
    response = resolve(responses.get(str(status)) or responses["default"])
    schema = response["content"]["application/json"]["schema"]
    wrong = list(faults(answer, schema, f"{method} {template}"))
    assert not wrong, "\n" + "\n".join(wrong)
    return answer


@pytest.fixture
def api(box, machine):
    """A daemon that has seen its two cards, both in pool queue, and changes their mode at once."""
    box.divvy.configure("mode_hold: 0s\ncards:\n  default: {pool: queue, mode: auto}\n")
    box.divvy.start()
    connection = Api(box.divvy.root / "run/divvy/divvyd.sock")
    harness.until(lambda: len(connection.ask("GET", "/v1/inventory")[1]["cards"]) == 2,
                  "both cards are seen")
    yield connection
    connection.close()


def spec(**more):
    return {"name": "train", "cwd": "/tmp", "argv": ["sleep", "60"], "output": "/dev/null", **more}


def test_the_validator_sees_what_is_wrong():
    schema = DOCUMENT["components"]["schemas"]["Submitted"]
    assert list(faults({"id": 1, "note": None}, schema, "x")) == []
    assert list(faults({"id": "1", "note": None}, schema, "x")) == ["x.id is '1', no integer"]
    assert list(faults({"id": 0, "note": None}, schema, "x")) == ["x.id is 0, below 1"]
    assert list(faults({"id": None, "note": "a"}, schema, "x")) == ["x.id is null"]
    assert list(faults({"id": 1}, schema, "x")) == ["x lacks note"]
    assert list(faults({"id": 1, "note": "", "more": 1}, schema, "x")) == \
        ["x.more is not in the document"]
    pool = DOCUMENT["components"]["schemas"]["Pool"]
    assert list(faults("none", pool, "x")) and not list(faults("off", pool, "x"))


def test_every_route_of_the_source_is_in_the_document():
    source = (harness.SOURCE / "src/api/routes.c").read_text()
    table = re.search(r"routes\[\] = \{(.*?)\n\};", source, re.S)[1]
    in_source = set(re.findall(r'\{ "([A-Z]+)", "([^"]+)"', table))
    in_document = {(method.upper(), re.sub(r"\{\w+\}", "{}", path))
                   for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert in_source == in_document


def test_answers_are_as_the_document_says(api):
    job = expect(api, "POST", "/v1/jobs",
                 spec(request={"kind": "slices", "profile": "1g.10gb"}), 201)["id"]
    tail = expect(api, "POST", "/v1/jobs",
                  spec(request={"kind": "cards", "count": 2}, limit_us=3600000000), 201)["id"]
    ran = expect(api, "GET", "/v1/jobs/{id}/wait", query="?until=started&timeout_ms=20000", id=job)
    assert ran["state"] == "running" and ran["argv"] == ["sleep", "60"]
    expect(api, "GET", "/v1/jobs/{id}", id=tail)
    expect(api, "GET", "/v1/jobs/{id}/why", id=tail)
    assert expect(api, "GET", "/v1/status")["jobs"]["running"] == 1
    assert [share["running"] for share in expect(api, "GET", "/v1/shares")["shares"]] == [1, 1]
    cards = expect(api, "GET", "/v1/inventory")["cards"]
    assert [hold["job"] for card in cards for piece in card["slices"] or []
            if (hold := piece["hold"])] == [job]
    expect(api, "PATCH", "/v1/cards/{gpu}", {"pool": "queue"}, gpu=0)
    assert expect(api, "GET", "/v1/maintenance")["phase"] == "none"
    assert expect(api, "GET", "/v1/layout")["outcome"] is None
    wish = {"text": "cards: [{card: gpu1, slices: [7g.80gb]}]", "agreed": True}
    assert expect(api, "POST", "/v1/layout", wish)["outcome"] == "open"
    harness.until(lambda: api.ask("GET", "/v1/layout")[1]["outcome"] == "done", "it is laid out")
    assert expect(api, "GET", "/v1/layout")["kept"][0]["gpu"] == 1
    gone = expect(api, "POST", "/v1/layout", {"make": "gpu1/1g.10gb", "wait": True})
    assert gone["outcome"] == "refused" and gone["cards"][0]["verdict"] == "impossible"
    expect(api, "POST", "/v1/jobs/{id}/hold", id=tail)
    assert expect(api, "GET", "/v1/jobs/{id}", id=tail)["hold"]
    expect(api, "POST", "/v1/jobs/{id}/release", {}, id=tail)
    expect(api, "POST", "/v1/jobs/{id}/requeue", None, 409, id=tail)
    array = expect(api, "POST", "/v1/jobs", spec(array="0-9", begin_wall_us=int(9e15)), 201)["id"]
    folded = expect(api, "GET", "/v1/jobs", query=f"?fold=true&after={array - 1}")["jobs"]
    assert [job["array"]["indices"] for job in folded] == ["0-9"]
    expect(api, "POST", "/v1/jobs/{id}/cancel", {"indices": "3"}, id=array)
    many = expect(api, "POST", "/v1/batch", {"jobs": [spec(hold=True), spec(hold=True, env=["A=2"])],
                                             "env": ["A=1"]})
    assert many["refused"] is None and len(set(many["ids"])) == 2
    expect(api, "POST", "/v1/batch", {"jobs": []}, 400)
    for held in many["ids"]:
        expect(api, "POST", "/v1/jobs/{id}/cancel", id=held)
    expect(api, "POST", "/v1/jobs/{id}/cancel", id=array)
    expect(api, "POST", "/v1/jobs/{id}/cancel", id=tail)
    expect(api, "POST", "/v1/jobs/{id}/cancel", {}, id=job)
    ended = expect(api, "GET", "/v1/jobs/{id}/wait", query="?timeout_ms=20000", id=job)
    assert ended["state"] == "cancelled"


def test_pages(api):
    jobs = [expect(api, "POST", "/v1/jobs", spec(argv=["true"]), 201)["id"] for _ in range(3)]
    first = expect(api, "GET", "/v1/jobs", query="?state=all&limit=2")
    rest = expect(api, "GET", "/v1/jobs", query=f"?state=all&limit=2&after={first['next']}")
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == jobs
    assert rest["next"] is None
    assert "argv" not in first["jobs"][0]


@pytest.mark.parametrize("method, template, body, status, code, query", [
    ("GET", "/v1/jobs/{id}", None, 404, "not_found", ""),
    ("GET", "/v1/jobs/{id}/wait", None, 404, "not_found", ""),
    ("GET", "/v1/jobs/{id}/why", None, 404, "not_found", ""),
    ("POST", "/v1/jobs/{id}/cancel", None, 404, "not_found", ""),
    ("POST", "/v1/jobs/{id}/hold", {"index": 3}, 404, "not_found", ""),
    ("POST", "/v1/jobs/{id}/release", None, 404, "not_found", ""),
    ("POST", "/v1/jobs/{id}/requeue", None, 404, "not_found", ""),
    ("POST", "/v1/jobs", spec(array="9-1"), 400, "invalid", ""),
    ("POST", "/v1/jobs", spec(dependency="afterok:4711"), 400, "invalid", ""),
    ("GET", "/v1/jobs", None, 400, "invalid", "?state=dreaming"),
    ("GET", "/v1/jobs", None, 400, "invalid", "?colour=red"),
    ("GET", "/v1/jobs", None, 400, "invalid", "?limit=0"),
    ("POST", "/v1/jobs", {"name": "x"}, 400, "invalid", ""),
    ("POST", "/v1/jobs", spec(gpu=1), 400, "invalid", ""),
    ("POST", "/v1/jobs", spec(name="x" * 10240), 400, "invalid", ""),
    ("POST", "/v1/jobs", spec(request={"kind": "slices", "profile": "1g.5gb"}), 400, "invalid", ""),
    ("POST", "/v1/jobs", spec(script="x" * (1 << 20)), 413, "too_large", ""),
    ("PATCH", "/v1/cards/{gpu}", {"pool": "mine"}, 400, "invalid", ""),
    ("PATCH", "/v1/cards/{gpu}", {"mode": "auto"}, 404, "not_found", ""),
    ("POST", "/v1/layout", {}, 400, "invalid", ""),
    ("POST", "/v1/layout", {"text": "cards: 7"}, 400, "invalid", ""),
    ("POST", "/v1/layout", {"make": "gpu0/1g.10gb", "unmake": "gpu0/1g.10gb@0"}, 400, "invalid", ""),
    ("POST", "/v1/layout", {"unmake": "gpu0/1g.10gb@0"}, 404, "not_found", ""),
    ("POST", "/v1/layout/stop", None, 409, "already", ""),
    ("POST", "/v1/maintenance", {"action": "end"}, 409, "already", ""),
    ("POST", "/v1/maintenance", {"action": "rest"}, 400, "invalid", ""),
    ("POST", "/v1/maintenance", {"action": "begin", "gpus": [7]}, 404, "not_found", ""),
])
def test_refusals(api, method, template, body, status, code, query):
    answer = expect(api, method, template, body, status, query, id=4711, gpu=4711)
    assert answer["error"]["code"] == code
    assert answer["error"]["message"]


def test_a_wrong_method_is_told_the_right_one(api):
    status, answer = api.ask("DELETE", "/v1/jobs/1")
    assert (status, answer["error"]["code"]) == (405, "method")
    assert "GET" in answer["error"]["message"]
