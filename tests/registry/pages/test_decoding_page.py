"""The page that decodes a record: paste or upload, frames of all kinds, and records that break."""

import json
import re
import zlib
from html import unescape
from uuid import UUID

import pytest

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
HOSTILE = "<script>alert(1)</script>\u202e"
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "to", "type": "string"}],
}
PAYLOAD = bytes([2, 2 * len(HOSTILE.encode())]) + HOSTILE.encode()


@pytest.fixture(scope="module")
def browser(open_pages):
    """Open the pages of a registry with a schema in two contexts; `ids` has its id and GUID."""
    opened = open_pages()
    for subject in ("orders-value", "%3A.other%3Aorders"):
        body = json.dumps({"schema": json.dumps(SCHEMA)})
        assert 200 == opened.call("POST", f"/subjects/{subject}/versions", body, **JSON)[0]
    answer = json.loads(opened.get("/subjects/orders-value/versions/1", **JSON))
    opened.guid = bytes.fromhex(answer["guid"].replace("-", ""))
    return opened


def words(text):
    """Return the text of a page without its elements."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)))


def posted(browser, **fields):
    """Return the page that answers a form."""
    status, text = browser.post("/ui/decode", fields)
    assert 200 == status, text
    return text


def test_records_of_glue(browser):
    """A frame of AWS Glue leads to the version that was migrated from there; a compressed payload is unpacked."""
    version = UUID("11111111-2222-3333-4444-555566667777")
    metadata = {"properties": {"glue.schema.version.id": str(version)}}
    body = json.dumps({"schema": json.dumps(SCHEMA), "metadata": metadata})
    assert 200 == browser.call("POST", "/subjects/%3A.glue%3Aorders/versions", body, **JSON)[0]
    head = bytes([3, 0]) + version.bytes
    packed = bytes([3, 5]) + version.bytes
    for record in (head + PAYLOAD, packed + zlib.compress(PAYLOAD)):
        shown = words(posted(browser, data=record.hex()))
        assert "orders version 1" in shown
        assert '"id": 1, "to"' in shown
    for record, message in (
        (packed + PAYLOAD, "the compressed payload is damaged"),
        (packed + zlib.compress(PAYLOAD)[:-3], "the compressed payload is damaged"),
        (packed + zlib.compress(bytes(1 << 20)), "more than 262144 bytes"),
        (bytes([3, 0]) + bytes(16) + PAYLOAD, "No version of this registry was migrated from AWS Glue"),
    ):
        assert message in words(posted(browser, data=record.hex()))


def test_the_form(browser):
    """Without a record the page is a form."""
    assert "Decode a record" in browser.get("/ui/decode")


@pytest.mark.parametrize("form", [lambda data: data.hex(), lambda data: f"0x{data.hex(' ')}"])
def test_a_pasted_record(browser, form):
    """The page shows frame, schema, value and the place of each part, all as text."""
    text = posted(browser, data=form(b"\0\0\0\0\1" + PAYLOAD))
    shown = words(text)

    assert "Confluent, schema id: 1" in shown
    assert "orders-value version 1" in shown
    assert '"id": 1, "to": "<script>alert(1)</script>⟨U+202E⟩"' in shown
    assert "6 29 to string" in shown
    assert "<script>alert" not in text
    assert "\u202e" not in text


def test_a_guid_in_front_and_in_a_header(browser):
    """GUIDs are found wherever the frame has them."""
    guid = b"\1" + browser.guid

    assert "schema GUID" in words(posted(browser, data=(guid + PAYLOAD).hex()))
    shown = words(posted(browser, data=PAYLOAD.hex(), header=guid.hex()))
    assert "GUID in a record header" in shown
    assert '"id": 1' in shown


def test_a_record_without_a_frame(browser):
    """A bare payload needs an id, in its context."""
    assert "enter a schema id" in words(posted(browser, data="0200"))
    assert ":.other:orders" not in posted(browser, data="0200", id="1")
    assert '"to": ""' in words(posted(browser, data="0200", id="1", context=".other"))


def test_an_upload(browser):
    """A file is decoded as it is."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="r"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n" + b"\0\0\0\0\1\2\0" + b"\r\n--x--\r\n"
    )
    status, text = browser.call("POST", "/ui/decode", body, Content_Type="multipart/form-data; boundary=x")

    assert 200 == status
    assert '"to": ""' in words(text)


BROKEN = [
    ("00000000010204", {}, "expected a string of 2 bytes, but only 0 bytes are left."),
    ("00000000010202", {}, "At byte 7, in to"),
    ("0000000009", {}, "Schema 9 not found"),
    ("03000000000000000000000000000000000000", {}, "No version of this registry was migrated"),
    ("xyz!", {}, "The text is not a record: expected bytes in hex or base64, at character 4."),
    ("00", {"id": "x"}, "Expected a schema id"),
    ("00", {"header": "00"}, "Expected magic byte 1 and a GUID"),
    ("00" * (257 << 10), {}, "Expected a record of at most 262144 bytes"),
]


@pytest.mark.parametrize(("data", "more", "says"), BROKEN)
def test_what_cannot_be_decoded(browser, data, more, says):
    """The page says what is wrong, and where."""
    assert says in words(posted(browser, data=data, **more))


def test_forms_of_other_sites_are_refused(browser):
    """A page of another site cannot make a browser send records here."""
    assert 403 == browser.post("/ui/decode", {"data": "00"}, Sec_Fetch_Site="cross-site")[0]
