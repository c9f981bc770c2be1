"""What people do on pages: each action, its review, its command lines, its confirmation, and who may do it."""

import json
import re
import subprocess
from html import unescape
from urllib.parse import quote

import pytest

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
ONE = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}
TWO = {"type": "record", "name": "R", "fields": [*ONE["fields"], {"name": "y", "type": "int", "default": 0}]}
BROKEN = {"type": "record", "name": "R", "fields": [*ONE["fields"], {"name": "y", "type": "int"}]}


CONTRACT = {"properties": {"owner": "me\nher=e"}, "sensitive": ["owner"]}


@pytest.fixture
def browser(open_pages):
    """Open the pages of a fresh registry with all actions."""
    return open_pages(ui="full")


def api(browser, method, path, body=None):
    """Ask the API; return status and content."""
    status, text = browser.call(method, path, None if body is None else json.dumps(body), **JSON)
    return status, json.loads(text)


def token(text):
    """Return the token in the forms of a page."""
    return re.search(r'name="form_token" value="([0-9a-f]{64})"', text)[1]


def do(browser, action, confirmed=True, **fields):
    """Fill in the form of an action; return the status and the text of the answer."""
    place = "&".join(f"{name}={quote(fields[name])}" for name in ("subject", "version") if name in fields)
    form = {"form_token": token(browser.get(f"/ui/do/{action}?{place}")), **fields}
    return browser.post(f"/ui/do/{action}", form | ({"confirmed": "yes"} if confirmed else {}))


def words(text):
    """Return the text of a page as a person reads it."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def lines(text):
    """Return the command lines of a review, by tool."""
    found = re.findall(r'<pre id="line-(\w+)"[^>]*>(.*?)</pre>', text, re.DOTALL)
    return {tool: unescape(line) for tool, line in found}


def test_registering(browser):
    """A schema is reviewed with its verdict, and stored only once it is confirmed."""
    form = {"subject": "a/b", "format": "AVRO", "schema": json.dumps(ONE)}
    status, text = do(browser, "register", confirmed=False, **form)
    assert (200, True) == (status, "Compatible: the registry would accept this schema." in words(text))
    assert (200, []) == api(browser, "GET", "/subjects")
    assert 303 == do(browser, "register", **form)[0]
    assert "/ui/subjects/a%2Fb" == browser.headers["location"]
    assert "Done: Register a schema. It is version 1." in words(browser.get(browser.headers["location"]))
    assert (200, [1]) == api(browser, "GET", "/subjects/a%2Fb/versions")
    again = browser.get("/ui/do/register?subject=a%2Fb")
    assert ONE == json.loads(unescape(re.search(r"<textarea[^>]*>\n(.*?)</textarea>", again, re.DOTALL)[1]))


def test_the_verdict_while_typing(browser):
    """Each change of the form brings the verdict and its reasons, and stores nothing."""
    do(browser, "register", subject="s", schema=json.dumps(ONE))
    form = {"form_token": token(browser.get("/ui/do/register")), "subject": "s", "format": "AVRO"}
    for schema, expected in (
        (json.dumps(TWO), "Compatible"),
        (json.dumps(BROKEN), "Add a default to field 'y'"),
        ('{"type": "recor', "Not compatible"),
        ("", "Not compatible"),
    ):
        status, text = browser.post("/ui/do/register/check", form | {"schema": schema})
        assert (200, True) == (status, expected in words(text)), text
        assert "<html" not in text
    assert (200, [1]) == api(browser, "GET", "/subjects/s/versions")
    assert 403 == browser.post("/ui/do/register/check", form | {"form_token": ""})[0]


def test_a_new_version_begins_with_the_latest_one(browser):
    """The form of a registration holds the latest schema as the page of the version shows it: indented."""
    do(browser, "register", subject="s", schema=json.dumps(ONE))
    text = browser.get("/ui/do/register?subject=s")
    assert json.dumps(ONE, indent=2) == unescape(re.search(r"<textarea[^>]*>\n(.*?)</textarea>", text, re.DOTALL)[1])


def test_properties_that_do_not_fit_in_one_line(browser):
    """A property that the form cannot hold is not changed by accident."""
    body = {"schema": json.dumps(ONE), "metadata": CONTRACT}
    assert 200 == api(browser, "POST", "/subjects/s/versions", body)[0]
    status, text = do(browser, "edit", subject="s", version="1", properties="owner=me\nher=e", sensitive="owner")
    assert (400, True) == (status, "does not fit in one line" in words(text))
    assert (200, [1]) == api(browser, "GET", "/subjects/s/versions")


def test_a_schema_that_is_refused(browser):
    """The form comes back with the API's sentence and what was typed."""
    do(browser, "register", subject="s", schema=json.dumps(ONE))
    status, text = do(browser, "register", subject="s", schema=json.dumps(BROKEN))
    assert 409 == status
    assert "Schema being registered is incompatible with an earlier schema" in words(text)
    assert json.dumps(BROKEN) == unescape(re.search(r"<textarea[^>]*>\n(.*?)</textarea>", text, re.DOTALL)[1])
    for fields, message in (
        ({"subject": "", "schema": '"int"'}, "Name the subject"),
        ({"subject": "s", "schema": '"int"', "references": "nonsense"}, "Expected references as NAME=SUBJECT:VERSION"),
        ({"subject": "s", "schema": "</textarea><script>alert(1)</script>"}, "Invalid schema"),
    ):
        status, text = do(browser, "register", **fields)
        assert status >= 400
        assert message in words(text)
        assert "<script>alert" not in text


def test_a_file_with_references(browser):
    """A file is registered as it is, with references that are picked by name."""
    do(browser, "register", subject="base", schema=json.dumps(ONE))
    using = '{"type": "record", "name": "U", "fields": [{"name": "r", "type": "R"}]}'
    boundary = "xyz"
    fields = {"form_token": token(browser.get("/ui/do/register")), "subject": "using", "format": "AVRO",
              "references": "R=base:1\r\n", "schema": "", "confirmed": "yes"}  # fmt: skip
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="u"\r\n\r\n{using}\r\n')
    parts.append(f"--{boundary}--\r\n")
    kind = f"multipart/form-data; boundary={boundary}"
    status, text = browser.call(
        "POST", "/ui/do/register", "".join(parts), Content_Type=kind, Sec_Fetch_Site="same-origin"
    )
    assert 303 == status, words(text)
    found = api(browser, "GET", "/subjects/using/versions/1")[1]
    assert [{"name": "R", "subject": "base", "version": 1}] == found["references"]


def test_level_and_mode(browser):
    """Level and mode are set for the registry, a context or a subject, and removed again."""
    for subject, at in (("", ""), (":.c:", "/%3A.c%3A"), ("s", "/s")):
        assert 303 == do(browser, "level", subject=subject, level="FULL")[0]
        assert f"/ui/settings{at}" == browser.headers["location"]
        assert "FULL" == api(browser, "GET", f"/config{at}")[1]["compatibilityLevel"]
        assert 303 == do(browser, "mode", subject=subject, mode="READONLY")[0]
        assert "READONLY" == api(browser, "GET", f"/mode{at}")[1]["mode"]
        assert 303 == do(browser, "mode", subject=subject, mode="READWRITE")[0]
        assert 303 == do(browser, "level", subject=subject, level="inherit")[0]
    assert {"compatibilityLevel": "BACKWARD"} == api(browser, "GET", "/config/s")[1]
    status, text = do(browser, "level", subject="s", level="<b>")
    assert (422, True) == (status, "Invalid compatibility level" in words(text))


def test_inheriting_the_level_removes_the_level_alone(browser):
    """What else is set for a scope stays: its group, and the alias of a name that is one."""
    group = {"compatibility": "FULL", "compatibilityGroup": "major"}
    for subject, config in (("s", group), (":.c:", group), ("a", {"alias": "s", "compatibility": "FULL"})):
        at = quote(subject, safe="")
        api(browser, "PUT", f"/config/{at}", config)
        assert 303 == do(browser, "level", subject=subject, level="inherit")[0]
        kept = {name: value for name, value in config.items() if name != "compatibility"}
        kept["compatibilityLevel"] = "BACKWARD"  # the default
        assert (200, kept) == api(browser, "GET", f"/config/{at}")
    for level in ("FULL", "inherit"):
        do(browser, "level", subject="only", level=level)
        assert (level == "FULL") == ("/ui/settings/only" in browser.get("/ui/settings"))


def test_the_level_of_an_alias_is_chosen(browser):
    """The form of an alias begins with no choice, says whose level counts, and does nothing without a choice."""
    api(browser, "PUT", "/config/a", {"alias": "s"})
    text = browser.get("/ui/do/level?subject=a")
    assert ["choose"] == re.findall(r"<option[^>]* selected>([^<]*)</option>", text)
    assert "This name is an alias of s, whose level counts." in words(text)
    status, text = do(browser, "level", subject="a", level="")
    assert (400, True) == (status, "Choose a level" in words(text))
    assert "s" == api(browser, "GET", "/config/a")[1]["alias"]


def test_an_action_says_once_that_it_is_done(browser):
    """The sentence belongs to the session and to the next page: no address, reload or other browser brings it."""
    do(browser, "register", subject="s", schema=json.dumps(ONE))
    told = browser.cookies["strata_told"]
    assert "Done: Register a schema." in words(browser.get("/ui/subjects/s"))
    for address in ("/ui/subjects/s", "/ui/subjects/s?done=register", "/ui/subjects/s?done=delete"):
        assert "Done" not in words(browser.get(address))
    browser.cookies = {"strata_told": told}
    assert "Done" not in words(browser.get("/ui/subjects/s"))
    browser.cookies = {"strata_told": "Done: everything."}
    assert "Done" not in words(browser.get("/ui/subjects/s"))


def test_registering_what_is_there_says_so(browser):
    """A schema that the subject has already changes nothing, and the page says which version it is."""
    for expected in ("Done: Register a schema. It is version 1.", "Nothing changed: the schema was already registered"):
        assert 303 == do(browser, "register", subject="s", schema=json.dumps(ONE))[0]
        assert expected in words(browser.get("/ui/subjects/s"))
    assert (200, [1]) == api(browser, "GET", "/subjects/s/versions")


def test_actions_on_a_deleted_subject_say_what_they_are_about(browser):
    """A deleted subject goes for good as a whole; a version comes back alone, and the form names the others."""
    api(browser, "PUT", "/config/s", {"compatibility": "NONE"})
    for schema in (ONE, TWO, BROKEN):
        do(browser, "register", subject="s", schema=json.dumps(schema))
    do(browser, "delete", subject="s")
    shown = words(browser.get("/ui/subjects/s"))
    assert "Bring back version 3" in shown
    assert "Delete for good version" not in shown
    text = words(browser.get("/ui/do/bring-back?subject=s&version=3"))
    assert "This concerns version 3 alone. Bring back others from their own pages: version 1, 2." in text
    assert "This concerns all versions: 1, 2, 3." in words(browser.get("/ui/do/delete-for-good?subject=s"))
    assert "This concerns version 2 alone." in words(browser.get("/ui/do/delete-for-good?subject=s&version=2"))
    assert 303 == do(browser, "delete-for-good", subject="s", typed="s")[0]
    assert (200, []) == api(browser, "GET", "/subjects?deleted=true")


def test_a_deletion_that_would_be_refused_is_not_offered(browser):
    """The form names who refers to a version, and has no button; the API refuses a request that is made by hand."""
    api(browser, "POST", "/subjects/base/versions", {"schema": json.dumps(ONE)})
    using = '{"type": "record", "name": "U", "fields": [{"name": "r", "type": "R"}]}'
    body = {"schema": using, "references": [{"name": "R", "subject": "base", "version": 1}]}
    api(browser, "POST", "/subjects/using/versions", body)
    for place in ("subject=base", "subject=base&version=1"):
        text = browser.get(f"/ui/do/delete?{place}")
        assert "Referred to by using version 1." in words(text)
        assert "The registry would refuse this now. One or more references exist" in words(text)
        assert '<button name="confirmed"' not in text
        assert "<button>Review" not in text
    status, text = do(browser, "delete", subject="base")
    assert (422, True) == (status, "One or more references exist" in words(text))
    assert '<button name="confirmed"' in do(browser, "delete", confirmed=False, subject="using")[1]


@pytest.mark.parametrize("subject", ["", "s"])
def test_a_form_begins_with_what_is_set(browser, subject):
    """The forms of level and mode begin with the scope's own setting: sending them unchanged changes nothing."""
    for action, value in (("level", "FULL"), ("mode", "READONLY")):
        for chosen in ("inherit", value):
            text = browser.get(f"/ui/do/{action}?subject={subject}")
            assert [chosen] == re.findall(r"<option selected>([^<]*)</option>", text)
            do(browser, action, subject=subject, **{action: value})


def test_deleting_and_bringing_back(browser):
    """A version goes softly, comes back with its contract, and goes for good only when its name is typed."""
    contract = {
        "metadata": {"properties": {"owner": "o"}},
        "ruleSet": {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "READ", "expr": "true"}]},
    }
    api(browser, "POST", "/subjects/s/versions", {"schema": json.dumps(ONE), **contract})
    assert 303 == do(browser, "delete", subject="s", version="1")[0]
    assert (200, []) == api(browser, "GET", "/subjects")
    assert "Bring back" in browser.get("/ui/subjects/s")
    assert 303 == do(browser, "bring-back", subject="s", version="1")[0]
    found = api(browser, "GET", "/subjects/s/versions/latest")[1]
    assert (json.dumps(ONE, separators=(",", ":")), {"owner": "o"}) == (
        found["schema"],
        found["metadata"]["properties"],
    )
    assert "r" == found["ruleSet"]["domainRules"][0]["name"]
    assert 303 == do(browser, "delete", subject="s")[0]
    for typed in ("", "S", "s "):
        status, text = do(browser, "delete-for-good", subject="s", typed=typed)
        assert (400, True) == (status, "Type 's' to confirm" in words(text))
    assert 303 == do(browser, "delete-for-good", subject="s", typed="s")[0]
    assert (200, []) == api(browser, "GET", "/subjects?deleted=true")


def test_metadata_and_tags(browser):
    """Properties and tags are edited into a new version; what the form does not show stays."""
    metadata = {"properties": {"owner": "a", "old": "1"}, "tags": {"**.x": ["PII"]}}
    api(browser, "POST", "/subjects/s/versions", {"schema": json.dumps(ONE), "metadata": metadata})
    assert "owner=a" in browser.get("/ui/do/edit?subject=s&version=1")
    form = {"properties": "owner=b=c\r\nnew = 2\r\n", "sensitive": "owner", "add": "R.x: KEY, PII\r\nR: WHOLE"}
    assert 303 == do(browser, "edit", subject="s", version="1", **form)[0]
    found = api(browser, "GET", "/subjects/s/versions/2?findTags=*")[1]
    assert {"owner": "b=c", "new": "2"} == {
        k: v for k, v in found["metadata"]["properties"].items() if k != "confluent:version"
    }
    assert (["owner"], {"**.x": ["PII"]}) == (found["metadata"]["sensitive"], found["metadata"]["tags"])
    tags = {one["schemaEntity"]["entityPath"]: one["tags"] for one in found["schemaTags"]}
    assert {"R": ["WHOLE"], "R.x": ["KEY", "PII"]} == tags
    assert 303 == do(browser, "edit", subject="s", version="2", properties="", remove="R.x: KEY")[0]
    status, text = do(browser, "edit", subject="s", version="1", properties="nonsense")
    assert (400, True) == (status, "Expected properties as NAME=VALUE" in words(text))


HOSTILE = 'it\'s $(touch x) `y`; "q" -z'
REVIEWS = [
    ("level", {"subject": HOSTILE, "level": "NONE"}, {"curl", "strata"}),
    ("mode", {"subject": HOSTILE, "mode": "IMPORT"}, {"curl", "strata"}),
    ("delete", {"subject": HOSTILE, "version": "1"}, {"curl", "strata"}),
    ("delete-for-good", {"subject": HOSTILE}, {"curl", "strata"}),
    ("bring-back", {"subject": HOSTILE, "version": "1"}, {"curl", "strata"}),
    ("edit", {"subject": HOSTILE, "version": "1", "properties": "a=it's", "add": "R: A, B"}, {"curl", "strata"}),
    ("register", {"subject": HOSTILE, "schema": '"it\'s"', "references": "a b=it's:1"}, {"curl", "strata"}),
]


@pytest.mark.parametrize(("action", "fields", "tools"), REVIEWS)
def test_command_lines(browser, action, fields, tools):
    """A review shows command lines that do the same, quoted for a shell, whatever the names hold."""
    api(browser, "POST", f"/subjects/{quote(HOSTILE, safe='')}/versions", {"schema": json.dumps(ONE)})
    if action == "delete-for-good":
        api(browser, "DELETE", f"/subjects/{quote(HOSTILE, safe='')}")
    found = lines(do(browser, action, confirmed=False, **fields)[1])
    assert tools == set(found)
    for line in found.values():
        script = f'set -- {line}; for one in "$@"; do printf \'%s\\0\' "$one"; done'
        words_of_shell = subprocess.run(
            ["sh", "-c", script], capture_output=True, text=True, check=True, timeout=60
        ).stdout
        arguments = words_of_shell.split("\0")
        assert quote(HOSTILE, safe="") in " ".join(arguments) or HOSTILE in arguments


def run(program, line):
    """Run the line of `strata` of a review in a shell."""
    line = f"exec {program} {line.removeprefix('strata ')}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert 0 == done.returncode, done.stderr


def test_the_strata_command_edits_and_brings_back(browser, program):
    """The lines for metadata and tags, and for a deleted version, make the same version as the action."""
    api(browser, "POST", "/subjects/-s/versions", {"schema": json.dumps(ONE)})
    fields = {"subject": "-s", "version": "1", "properties": "owner=it's", "add": "R.x: PII, A\nR: B"}
    run(program, lines(do(browser, "edit", confirmed=False, **fields)[1])["strata"])
    by_command = api(browser, "GET", "/subjects/-s/versions/2")[1]
    api(browser, "DELETE", "/subjects/-s/versions/2")
    run(program, lines(do(browser, "bring-back", confirmed=False, subject="-s", version="2")[1])["strata"])
    again = api(browser, "GET", "/subjects/-s/versions/3")[1]
    assert by_command["schema"] == again["schema"]
    assert {"owner": "it's", "confluent:version": "3"} == again["metadata"]["properties"]


def test_a_version_comes_back_as_it_was(browser):
    """A version without metadata comes back without the metadata of the latest one, under its id."""
    api(browser, "POST", "/subjects/s/versions", {"schema": json.dumps(ONE)})
    api(browser, "POST", "/subjects/s/versions", {"schema": json.dumps(ONE), "metadata": {"properties": {"a": "b"}}})
    api(browser, "DELETE", "/subjects/s/versions/1")
    assert 303 == do(browser, "bring-back", subject="s", version="1")[0]
    found = api(browser, "GET", "/subjects/s/versions/3")[1]
    assert (1, None) == (found["id"], found.get("metadata"))


def test_the_strata_command_does_the_same(browser, program):
    """The line of `strata` that a review shows, run in a shell, does what the action would do."""
    run(program, lines(do(browser, "level", confirmed=False, subject="-s", level="NONE")[1])["strata"])
    assert "NONE" == api(browser, "GET", "/config/-s")[1]["compatibilityLevel"]


def test_no_actions_without_full(open_pages):
    """With `--ui read` there is no button, and no address, that changes anything."""
    opened = open_pages(ui="read")
    api(opened, "POST", "/subjects/s/versions", {"schema": '"int"'})
    for path in ("/ui/subjects", "/ui/subjects/s", "/ui/subjects/s/versions/1", "/ui/settings", "/ui/settings/s"):
        assert "/ui/do/" not in opened.get(path)
    assert 404 == opened.call("GET", "/ui/do/delete?subject=s")[0]
    assert 415 == opened.post("/ui/do/delete", {"subject": "s", "confirmed": "yes"})[0]  # no route takes forms
    assert (200, ["s"]) == api(opened, "GET", "/subjects")


@pytest.mark.parametrize(
    "headers", [{"Sec_Fetch_Site": "cross-site"}, {"Origin": "https://evil.test"}, {"Origin": "null"}]
)
def test_forged_actions(open_pages, headers):
    """A form of another site does nothing, even if that site may call the API, and has a token."""
    opened = open_pages(ui="full", allowed_origins="https://evil.test")
    api(opened, "POST", "/subjects/s/versions", {"schema": '"int"'})
    form = {"form_token": token(opened.get("/ui/do/delete?subject=s")), "subject": "s", "confirmed": "yes"}
    assert 403 == opened.post("/ui/do/delete", form, **headers)[0]
    assert 403 == opened.post("/ui/do/delete", form | {"form_token": "x"})[0]
    assert (200, ["s"]) == api(opened, "GET", "/subjects")


def test_an_unknown_action(browser):
    """An action that does not exist is an error page."""
    assert 404 == browser.call("GET", "/ui/do/nothing")[0]
    assert 404 == browser.post("/ui/do/nothing", {"form_token": token(browser.get("/ui/do/level"))})[0]


def test_references_are_picked_from_a_list(browser):
    """The form lists latest versions by a part of their subject; a picked one becomes a reference."""
    for subject in ("base-one", "base-two", "other"):
        api(browser, "POST", f"/subjects/{subject}/versions", {"schema": json.dumps(ONE)})
    found = browser.get("/ui/places?reference_to=BASE")
    assert ["base-one:1", "base-two:1"] == re.findall(r'value="([^"]*)"', found)
    assert ["base-two:1"] == re.findall(r'value="([^"]*)"', browser.get("/ui/places?reference_to=base-two:1"))
    using = '{"type": "record", "name": "U", "fields": [{"name": "r", "type": "R"}]}'
    picked = {"reference_name": "R", "reference_to": "base-two:1"}
    text = do(browser, "register", confirmed=False, subject="using", schema=using, **picked)[1]
    assert "R=base-two:1</textarea>" in text
    assert 303 == do(browser, "register", subject="using", schema=using, **picked)[0]
    references = api(browser, "GET", "/subjects/using/versions/1")[1]["references"]
    assert [{"name": "R", "subject": "base-two", "version": 1}] == references


def test_actions_are_in_the_audit(open_pages, tmp_path):
    """The audit has the request of the API, not that of the page."""
    opened = open_pages(ui="full", audit=str(tmp_path / "audit.jsonl"))
    assert 303 == do(opened, "level", subject="s", level="NONE")[0]
    noted = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [("PUT", "/config/s", "/config/{subject}")] == [(one["method"], one["path"], one["route"]) for one in noted]
