"""What four people come for, with a mouse and with a keyboard only: each path from the first page to its end."""

import json

import pytest

from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from harness.waiting import until

FIELDS = [{"name": "id", "type": "long"}]
ONE = json.dumps({"type": "record", "name": "Fee", "fields": FIELDS})
SAFE = json.dumps(
    {"type": "record", "name": "Fee", "fields": [*FIELDS, {"name": "cents", "type": "int", "default": 0}]}
)
UNSAFE = json.dumps({"type": "record", "name": "Fee", "fields": [*FIELDS, {"name": "cents", "type": "int"}]})
PASSWORD = "open sesame"
_MOST_TABS = 150
_FORGOTTEN_MS = 2_000


class Mouse:
    """A person with a mouse."""

    def __init__(self, page):
        self.page = page

    def follow(self, link):
        """Follow a link."""
        self.page.get_by_role("link", name=link, exact=True).first.click()

    def press(self, button):
        """Press a button."""
        self.page.get_by_role("button", name=button, exact=True).click()

    def write(self, label, text):
        """Write into a field."""
        field = self._field(label)
        field.wait_for()
        self.page.wait_for_load_state("domcontentloaded")  # only then does the page's script see what is written
        field.fill(text)

    def choose(self, label, option):
        """Choose from a list."""
        self.page.get_by_label(label).select_option(option)

    def _field(self, label):
        named = self.page.get_by_role("textbox", name=label, exact=True)
        return named.or_(self.page.get_by_label(label, exact=True))  # a password has no role


class Keyboard(Mouse):
    """A person without a mouse, who goes from one element to the next and sees where they are."""

    def follow(self, link):
        """Follow a link."""
        self._reach(self.page.get_by_role("link", name=link, exact=True).first)
        self.page.keyboard.press("Enter")

    def press(self, button):
        """Press a button."""
        self._reach(self.page.get_by_role("button", name=button, exact=True))
        self.page.keyboard.press("Enter")

    def write(self, label, text):
        """Write into a field."""
        self._reach(self._field(label))
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def choose(self, label, option):
        """Choose from a list."""
        choice = self.page.get_by_label(label)
        self._reach(choice)

        def chosen():
            self.page.keyboard.type(option)
            # The browser forgets the letters after a second, which may pass between two of them.
            return option == choice.input_value() or self.page.wait_for_timeout(_FORGOTTEN_MS)

        until(chosen)

    def _reach(self, target):
        target.wait_for()
        tag, body = target.evaluate("(one) => one.tagName"), self.page.locator("body")
        for _ in range(_MOST_TABS):
            self.page.keyboard.press("Tab")
            # Finding the target by its role takes ten times as long.
            if tag != body.evaluate("() => document.activeElement.tagName"):
                continue
            if target.evaluate("(one) => one === document.activeElement"):
                assert "none" != target.evaluate("(one) => getComputedStyle(one).outlineStyle")
                return
        raise AssertionError(f"the key Tab does not lead to {target}")


@pytest.fixture(params=[Mouse, pytest.param(Keyboard, marks=pytest.mark.slow)])
def person(request, open_page):
    """Return a person at the first page, by mouse and by keyboard."""
    page = open_page()
    page.goto("/")
    return request.param(page)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """Yield a registry with access control: ada may do everything, rita may read."""
    file = tmp_path_factory.mktemp("users") / "auth.json"
    users = [{"name": name, "password": str(cheap_hash(PASSWORD))} for name in ("ada", "rita")]
    roles = [{"principal": "User:ada", "role": "admin"}, {"principal": "User:rita", "role": "consumer", "on": "*"}]
    file.write_text(json.dumps({"users": users, "roles": roles}))
    with RegistryNode("memory:", "--ui=full", f"--auth-file={file}") as node:
        yield node


def read(page, *texts):
    """Wait for a page that has these texts."""
    for text in texts:
        page.get_by_text(text).first.wait_for()


def test_an_engineer_finds_a_field_and_its_producer(person):
    """An engineer finds a field by a word of its documentation, and who is responsible for it."""
    person.follow("Search")
    person.write("Words", "doc:receipt tag:PII")
    person.press("Search")
    read(person.page, "receipt_email")
    person.follow("orders-value version 3")
    read(person.page, "Where the receipt goes.", "team-checkout", "checkout-service")


def test_an_operator_finds_why_a_record_is_dead(person, service):
    """An operator pastes the bytes of a dead letter, and reads where they break and why."""
    schema_id = service.api("GET", "/subjects/orders-value/versions/1")["id"]
    person.follow("Decode")
    person.write("Record", f"00 {schema_id:08x} 0e 14 61 62 63")
    person.press("Decode")
    read(person.page, "At byte 7, in email: expected a string of 10 bytes, but only 3 bytes are left.")


def test_a_reviewer_compares_and_approves(person, service):
    """A reviewer reads the verdict while a schema is typed, approves the good one, and compares the two versions."""
    subject = f"fees-{type(person).__name__}"
    service.register(subject, {"schema": ONE})
    page = person.page
    person.write("Name", "fees-")
    person.press("Apply")
    person.follow(subject)
    person.follow("Register a schema")
    person.write("Schema", UNSAFE)
    read(page, "Not compatible: the registry would refuse this schema.", "Add a default to field 'cents'")
    person.write("Schema", SAFE)
    read(page, "Compatible: the registry would accept this schema.")
    person.press("Review")
    read(page, "The same on the command line", "strata register")
    assert [1] == service.api("GET", f"/subjects/{subject}/versions")
    person.press("Register a schema")
    read(page, "Done: Register a schema.")
    assert [1, 2] == service.api("GET", f"/subjects/{subject}/versions")
    person.follow("Version 2")
    person.follow("Changes since version 1")
    read(page, "field added", "FULL: compatible")


def test_what_is_pasted_before_the_scripts_ran_is_judged(open_page, service):
    """On a slow network a schema is pasted first; its verdict shows once the scripts are there."""
    service.register("fees-slow", {"schema": ONE})
    page, held = open_page(), []
    page.route("**/htmx.min.js", lambda route: held.append(route))  # noqa: PLW0108 - Playwright takes no built-in
    page.goto("/ui/do/register?subject=fees-slow", wait_until="commit")
    page.get_by_role("textbox", name="Schema", exact=True).fill(UNSAFE)
    until(lambda: held or page.wait_for_timeout(20))
    held[0].continue_()
    read(page, "Not compatible: the registry would refuse this schema.")


def test_the_page_for_signing_in_is_accessible(open_page, guarded, findings):
    """Where a user must sign in first, the page has no serious findings."""
    page = open_page(base_url=guarded.url)
    page.goto("/ui/settings/fees")
    page.get_by_label("Password").wait_for()
    assert [] == findings(page)


@pytest.mark.parametrize("hands", [pytest.param(Mouse, marks=pytest.mark.slow), Keyboard])
def test_an_administrator_changes_a_level(hands, open_page, guarded):
    """An administrator signs in, sets the level of a subject and signs out."""
    scope = f"fees-{hands.__name__}"
    page = open_page(base_url=guarded.url)
    person = hands(page)
    page.goto(f"/ui/settings/{scope}")
    person.write("Name", "ada")
    person.write("Password", PASSWORD)
    person.press("Sign in")
    person.follow("Set the level")
    person.choose("Compatibility level", "FULL")
    person.press("Review")
    read(page, "compatibility=FULL")
    person.press("Set the level")
    read(page, "Done: Set the level.", "FULL")
    assert f"/ui/settings/{scope}" == page.url.removeprefix(guarded.url)
    page.get_by_role("cell", name="FULL", exact=True).wait_for()
    person.press("Sign out")
    page.get_by_role("button", name="Sign in", exact=True).wait_for()


def test_a_reader_is_not_offered_a_level(open_page, guarded):
    """A reader who signs in sees no action, and is refused at the address of one."""
    scope = "fees-reader"
    page = open_page(expects=("403 (Forbidden)",), base_url=guarded.url)
    person = Mouse(page)
    page.goto(f"/ui/settings/{scope}")
    person.write("Name", "rita")
    person.write("Password", PASSWORD)
    person.press("Sign in")
    read(page, "rita")
    page.goto(f"/ui/subjects?name={scope}")
    assert 0 == page.get_by_role("link", name="Register a schema").count()
    page.goto(f"/ui/do/level?subject={scope}")
    page.get_by_label("Compatibility level").select_option("NONE")
    page.get_by_role("button", name="Review").click()
    page.get_by_role("button", name="Set the level").click()
    page.get_by_role("alert").wait_for()
