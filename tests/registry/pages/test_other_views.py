"""The pages of contexts, settings and encryption keys."""

import json
import re
from html import unescape

import pytest

JSON = {"Content-Type": "application/json", "Accept": "application/json"}


@pytest.fixture(scope="module")
def browser(open_pages):
    """Open the pages of a registry with two contexts, settings and keys."""
    opened = open_pages()
    for subject in ("a", "b", "%3A.other%3Ax"):
        send(opened, "POST", f"/subjects/{subject}/versions", {"schema": '"int"'})
    send(opened, "PUT", "/config", {"compatibility": "FULL_TRANSITIVE"})
    send(opened, "PUT", "/config/a", {"compatibility": "NONE", "defaultMetadata": {"properties": {"k": "<i>"}}})
    send(opened, "PUT", "/mode/%3A.other%3A", {"mode": "READONLY"})
    kek = {"name": "kek-1", "kmsType": "aws-kms", "kmsKeyId": "arn:1", "kmsProps": {"p": "<q>"}, "doc": "d"}
    send(opened, "POST", "/dek-registry/v1/keks", kek)
    send(opened, "POST", "/dek-registry/v1/keks/kek-1/deks", {"subject": "a", "encryptedKeyMaterial": "c2VjcmV0"})
    return opened


def send(opened, method, path, body):
    """Change something through the API."""
    status, text = opened.call(method, path, json.dumps(body), **JSON)
    assert 200 == status, text


def rows(text):
    """Return the rows of all tables of a page as lists of texts."""
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", text, re.DOTALL)
    cells = (
        [re.sub(r"<[^>]*>", " ", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in found
    )
    return [[" ".join(unescape(cell).split()) for cell in row] for row in cells]


def test_contexts(browser):
    """Each context has its numbers, and leads to its subjects and its settings."""
    text = browser.get("/ui/contexts")
    assert [".", "2", "1", "Settings of ."] in rows(text)
    assert [".other", "1", "1", "Settings of .other"] in rows(text)
    assert 'href="/ui/subjects?context=.other"' in text
    assert "Settings of the context <bdi>.other</bdi>" in browser.get("/ui/settings/%3A.other%3A")


def test_settings_of_the_registry(browser):
    """The settings of the registry come first, then all scopes with settings of their own."""
    found = rows(browser.get("/ui/settings"))
    assert ["compatibilityLevel which changes a new version may make", "FULL_TRANSITIVE", "the registry"] in found
    assert ["a", "NONE", "-", "defaultMetadata"] in found
    assert [":.other: context", "-", "READONLY", ""] in found


def test_settings_of_a_scope(browser):
    """A scope shows what is in force, and who sets it."""
    found = rows(browser.get("/ui/settings/a"))
    assert ["compatibilityLevel which changes a new version may make", "NONE", "this subject"] in found
    assert '{ "properties": { "k": "<i>" } }' in [row[1] for row in found]
    found = rows(browser.get("/ui/settings/%3A.other%3Ax"))
    assert ["compatibilityLevel which changes a new version may make", "FULL_TRANSITIVE", "the registry"] in found
    assert ["mode which operations are allowed", "READONLY", "the context .other"] in found


def test_keys(browser):
    """Keys are listed with what they encrypt; key material is not shown."""
    assert ["kek-1", "aws-kms", "arn:1"] == rows(browser.get("/ui/keys"))[1][:3]
    text = browser.get("/ui/keys/kek-1")
    assert ["a", "AES256_GCM", "1"] == rows(text)[1][:3]
    assert "<dt>KMS property <bdi>p</bdi></dt><dd>&lt;q&gt;</dd>" in text
    assert "c2VjcmV0" not in text
    assert 404 == browser.call("GET", "/ui/keys/none")[0]
