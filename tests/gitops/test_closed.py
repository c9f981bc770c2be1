"""Subjects that are read-only, plan files that are used elsewhere, and applies that end halfway."""

import json

import pytest

SUBJECTS = "subjects: [{name: '{stem}', files: '*.avsc', %s}]"


@pytest.fixture
def closed(files, record, registry):
    """Apply a manifest that leaves its subjects read-only."""
    files.write(a__avsc=record("a", name="A"), b__avsc=record("b", name="B"))
    files.put("strata.yaml", SUBJECTS % "mode: READONLY, compatibility: FULL")
    files.run("apply", "--url", registry.url, code=0)
    return registry


def test_a_subject_is_opened_before_it_changes(files, record, closed):
    """A manifest that opens subjects may change their settings and schemas in the same apply."""
    files.put("strata.yaml", SUBJECTS % "mode: READWRITE, compatibility: NONE")
    files.write(a__avsc=record("z", name="A"))
    plan = files.run("plan", "--url", closed.url, code=1)
    assert "mode: READONLY → READWRITE" in plan
    assert plan.index("READWRITE") < plan.index("FULL → NONE")
    assert "5 changed" in files.run("apply", "--url", closed.url, code=0)
    assert files.run("plan", "--url", closed.url, code=0).startswith("0 to change")


@pytest.mark.parametrize("change", ["schema", "settings"])
def test_a_plan_knows_what_is_read_only(files, record, closed, change):
    """A change of a read-only subject is rejected by the plan already, and nothing is written."""
    if change == "schema":
        files.write(a__avsc=record("a", name="A").replace('"A"', '"A", "doc": "x"'))
    else:
        files.put("strata.yaml", SUBJECTS % "mode: READONLY, compatibility: NONE")
    output = files.run("plan", "--url", closed.url, code=2)
    assert "read-only mode" in output
    assert output.endswith(f"{1 if change == 'schema' else 2} rejected\n")
    assert "nothing was written" in files.run("apply", "--url", closed.url, code=2)


def test_a_prune_keeps_what_is_read_only(files, record, registry):
    """A subject that may not be deleted is kept, and the plan says why; the apply does the rest."""
    files.write(a__avsc=record("a", name="A"), b__avsc=record("b", name="B"))
    files.put(
        "strata.yaml", "owner: shop\nsubjects: [{name: a, file: a.avsc, mode: READONLY}, {name: b, file: b.avsc}]"
    )
    files.run("apply", "--url", registry.url, code=0)
    files.put("strata.yaml", "owner: shop")
    output = files.run("plan", "--prune", "--url", registry.url, code=1)
    assert "- delete b: the manifest no longer has it" in output
    assert "kept a: " in output
    assert "read-only" in output
    files.run("apply", "--prune", "--url", registry.url, code=0)
    assert ["a"] == registry.get("/subjects")


def test_steps_that_fail_halfway_are_reported(files, record, serve_steps):
    """Where a failure leaves a part of the changes, the message names what is done and what is not."""
    files.write(a__avsc=record("a", name="A"), b__avsc=record("b", name="B"))
    files.put("strata.yaml", SUBJECTS % "compatibility: FULL")
    with serve_steps() as registry:
        files.run("plan", "--url", registry.url, "--out", "plan.json", code=1)
        registry.ask("PUT", "/mode/b", {"mode": "READONLY"})
        output = files.run("apply", "plan.json", "--url", registry.url, code=2)
        assert "1 of 4 steps are done (settings a); not done: settings b, register a, register b. " in output


class AnswersAreLost:
    """A service behind a gateway that gives up before the answer to a batch comes, which is written though."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        """Answer a request."""
        if scope.get("path") != "/v1/apply":
            await self._app(scope, receive, send)
            return
        request = await receive()
        unread = [request]

        async def again():
            return unread.pop() if unread else await receive()

        async def nowhere(_):
            pass

        writes = b"dryRun" not in request["body"]
        await self._app(scope, again, nowhere if writes else send)
        if writes:
            await send({"type": "http.response.start", "status": 504, "headers": []})
            await send({"type": "http.response.body", "body": b"timeout"})


def test_an_answer_that_is_lost_leaves_the_outcome_open(files, record, serve):
    """What a gateway says instead of the service does not prove that nothing was written."""
    files.write(a__avsc=record("a"), strata__yaml="subjects: [{name: a, file: a.avsc}]")
    with serve(wrap=AnswersAreLost) as registry:
        output = files.run("apply", "--url", registry.url, code=2)
        assert "It is not known whether anything was written" in output
        assert "0 to change" in files.run("plan", "--url", registry.url, code=0)


def test_a_plan_file_is_for_its_registry(files, record, service, serve, monkeypatch):
    """A plan file is not sent to another registry, and takes no option that `strata plan` has taken."""
    files.write(a__avsc=record("a"), strata__yaml="subjects: [{name: a, file: a.avsc}]")
    files.run("plan", "--url", service.url, "--out", "plan.json", code=1)
    with serve() as other:
        assert f"a plan for {service.url}, not for {other.url}" in files.run("apply", "plan.json", "--url", other.url)
        assert f"not for {other.url}" in files.run("apply", "plan.json", code=2, STRATA_URL=other.url)
        files.put("profiles.yaml", f"other: {{url: '{other.url}'}}\nlogin: {{auth: 'me:secret'}}")
        monkeypatch.setenv("STRATA_PROFILES", "profiles.yaml")
        assert f"not for {other.url}" in files.run("apply", "plan.json", "--profile", "other", code=2)
        assert [] == other.get("/subjects")
    for option in (("--prune",), ("--file", "strata.yaml"), ("--env", "x")):
        assert "a plan file takes no" in files.run("apply", "plan.json", *option, code=2)
    assert "registered a version 1" in files.run("apply", "plan.json", "--profile", "login", code=0)


def test_a_profile_of_the_command_line_goes_before_the_environment(files, record, service, serve, monkeypatch):
    """A STRATA_URL that was left in the shell does not redirect `--profile`; it counts beside STRATA_PROFILE."""
    service.register("mine", record("a"))
    files.put("profiles.yaml", f"mine: {{url: '{service.url}'}}")
    monkeypatch.setenv("STRATA_PROFILES", "profiles.yaml")
    with serve() as other:
        monkeypatch.setenv("STRATA_URL", other.url)
        assert "mine\n" == files.run("list", "--profile", "mine", code=0)
        assert "" == files.run("list", "--profile", "mine", "--url", other.url, code=0)
        assert "" == files.run("list", code=0, STRATA_PROFILE="mine")
        assert "1 schema checked, 1 error" in check_against(files, record, service.url)


def check_against(files, record, url):
    """Return the report of a check against a URL."""
    files.write(mine__avsc=record("b"))
    return files.run("check", "--against", url, "--profile", "mine", code=1)


@pytest.mark.parametrize("command", [("config", "--set", "compatibility=FULL"), ("mode", "--set", "READONLY")])
def test_to_set_and_to_delete_is_a_mistake(files, service, command):
    """One of two contrary options does not silently win."""
    assert "not both" in files.run(*command, "--delete", "--url", service.url, code=2)


def test_a_folder_stands_for_its_manifest(files, record, service):
    """`strata plan FOLDER` plans the manifest in it."""
    files.write(registry___a__avsc=record("a"), registry___strata__yaml="subjects: [{name: a, file: a.avsc}]")
    for named in (("registry",), ("--file", "registry"), ("registry/strata.yaml",)):
        assert "+ register a version 1" in files.run("plan", *named, "--url", service.url, code=1)
    assert ["a"] == [one["subject"] for one in json.loads(files.run("check", "registry", "--output=json"))["checked"]]
