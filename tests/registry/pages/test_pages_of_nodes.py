"""Pages of a real node with several workers: sessions and actions work whichever of them answers."""

import json
import re

import pytest

from harness.passwords import cheap_hash
from harness.registry import RegistryNode

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
REQUESTS = 12  # each over a connection of its own, so that all workers get some


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Yield a node of two workers with access control; `ada` may do all."""
    folder = tmp_path_factory.mktemp("node")
    password = str(cheap_hash("pw"))
    (folder / "auth.json").write_text(json.dumps({"users": [{"name": "ada", "password": password}]}))
    options = ("--workers=2", "--ui=full", f"--auth-file={folder / 'auth.json'}", "--superusers=User:ada")
    with RegistryNode(f"sqlite:///{folder}/strata.db", *options) as running:
        yield running


def token(text):
    """Return the token in the forms of a page."""
    return re.search(r'name="form_token" value="([0-9a-f]{64})"', text)[1]


def test_every_worker_knows_the_session(node, browser_of):
    """A person who has signed in to one worker is signed in to all, and each of them writes for the person."""
    browser = browser_of(node.port)
    form = {"name": "ada", "password": "pw", "to": "/ui/subjects"}
    assert 303 == browser.post("/ui/sign-in", form | {"form_token": token(browser.get("/ui/sign-in"))})[0]
    for number in range(REQUESTS):
        page = browser.get("/ui/do/register")
        fields = {"form_token": token(page), "subject": f"s{number}", "schema": '"int"', "confirmed": "yes"}
        assert 303 == browser.post("/ui/do/register", fields)[0]
        assert f"s{number}" in browser.get("/ui/subjects")
