"""Names in a manifest: of entries that look alike, of contexts, with braces and dollars, and in references."""

import json

import pytest


def checked(files, *arguments):
    """Return the files that a check read, by subject."""
    return {
        one["subject"]: one["file"] for one in json.loads(files.run("check", "--output", "json", *arguments))["checked"]
    }


@pytest.fixture
def two(files, record):
    """Write two folders with a schema each, and return the working folder."""
    files.write(a___x__avsc=record("a", name="X"), b___y__avsc=record("b", name="Y"))
    return files


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("{name: '{stem}', files: 'a/*'}, {name: '{stem}', files: 'b/*'}", {"x": "a/x.avsc", "y": "b/y.avsc"}),
        (
            "{name: o, file: a/x.avsc, context: one}, {name: o, file: b/y.avsc, context: two}",
            {":.one:o": "a/x.avsc", ":.two:o": "b/y.avsc"},
        ),
        ("{name: '{stem}', file: a/x.avsc}", {"{stem}": "a/x.avsc"}),
        ("{name: ':.:o', file: a/x.avsc, context: one}", {"o": "a/x.avsc"}),
    ],
)
def test_each_entry_names_its_subjects(two, entries, expected):
    """Two globs may share a template, two contexts a name; only globs have templates; `:.:` goes."""
    two.put("strata.yaml", f"subjects: [{entries}]")
    assert expected == checked(two)


def test_a_name_twice_in_one_list_is_a_mistake(two):
    """An entry does not silently take the place of another one of the same list."""
    two.put("strata.yaml", "subjects: [{name: o, file: a/x.avsc}, {name: o, file: b/y.avsc}]")
    assert "the subject o is also" in two.run("check", code=2)


def test_a_layer_changes_the_entries_of_its_name(two, service):
    """A later layer changes each entry of the name, or the one whose glob it names; other names are added."""
    two.put(
        "strata.yaml",
        "subjects: [{name: '{stem}', files: 'a/*'}, {name: '{stem}', files: 'b/*'}]\n"
        "environments:\n"
        "  all: {subjects: [{name: '{stem}', compatibility: FULL}]}\n"
        "  one: {subjects: [{name: '{stem}', files: 'b/*', compatibility: FULL}]}\n"
        "  more: {subjects: [{name: z, file: b/y.avsc}]}\n",
    )

    def settings(environment):
        lines = two.run("plan", "--url", service.url, "--env", environment, code=1).splitlines()
        return [line.split(": ")[0] for line in lines if line.startswith("~")]

    assert ["~ change the settings of x", "~ change the settings of y"] == settings("all")
    assert ["~ change the settings of y"] == settings("one")
    assert {"x", "y", "z"} == set(checked(two, "--env", "more"))


def test_the_prefix_of_the_default_context_does_not_hide_a_subject_from_prune(files, record, registry):
    """`:.:orders` is the subject `orders`: a prune keeps what the manifest has under the longer name."""
    files.put("orders.avsc", record("a"))
    files.put("strata.yaml", "owner: shop\nsubjects: [{name: ':.:orders', file: orders.avsc}]")
    files.run("apply", "--url", registry.url, code=0)

    assert "0 to change, 1 unchanged\n" == files.run("plan", "--prune", "--url", registry.url, code=0)


NAMES = ("a{stem}b", "{fullname}", "${HOME}", "$${HOME}", "${a b}", "${", "$${", ":.c:{path}", ":.c:${X}")


def test_dumped_names_are_no_templates_and_no_variables(files, record, service):
    """Names and metadata with braces and dollars come back from a dump as they were."""
    for name in NAMES:
        service.register(name, record("a"), metadata={"properties": {"text": f"{name} $${{ ${{"}})
    files.run("dump", "dump", "--url", service.url, code=0)

    assert files.run("plan", "dump/strata.yaml", "--url", service.url, code=0).startswith("0 to change")


@pytest.fixture
def pinned(files, record, registry):
    """Register a schema in a context that refers to the first of two versions, and dump both."""
    registry.register(":.c:item", record("a", name="Item"))
    order = record("x").replace('"long"', '"Item"')
    registry.register(":.c:order", order, references=[{"name": "Item", "subject": "item", "version": 1}])
    added = record("a", "b", name="Item").replace('"b", "type": "long"', '"b", "type": "long", "default": 0')
    registry.register(":.c:item", added)
    files.run("dump", ".", "--url", registry.url, code=0)
    return registry


def test_a_reference_to_an_older_version_in_a_context(files, pinned):
    """A plain name in a reference belongs to the context of its schema, as on the wire; the plan of a dump is empty."""
    assert files.run("plan", "--url", pinned.url, code=0).startswith("0 to change")


def test_a_registry_does_not_differ_from_its_dump(files, pinned):
    """What a file refers to by number, and the folder does not have, is that of the registry on the other side."""
    assert "" == files.run("diff", pinned.url, ".", code=0)
    assert "" == files.run("diff", ".", pinned.url, code=0)


def test_a_dump_names_what_it_cannot_have(files, record, service):
    """A subject whose own alias hides its versions is named: the registry answers with those of the alias."""
    service.register("hidden", record("a"))
    service.ask("PUT", "/config/hidden", {"alias": "elsewhere"})
    assert "left out: hidden, whose versions an alias hides" in files.run("dump", "dump", "--url", service.url, code=0)


def test_what_is_rejected_has_no_version_yet(files, record, service):
    """The title of a change says the version only if it is known."""
    files.write(a__avsc=record("a"))
    files.put("strata.yaml", "subjects: [{name: a, file: a.avsc, rules: {domainRules: [{name: x}]}}]")
    assert files.run("plan", "--url", service.url, code=2).startswith("+ register a: new subject\n")


def test_a_difference_shows_the_version_that_is_referred_to(files, pinned):
    """What a schema refers to by number comes from the registry, though the tree has a later version of it."""
    path = files.root / "schemas" / "%3A.c%3Aorder.avsc"
    path.write_text(path.read_text().replace('"name": "Order"', '"name": "Order", "doc": "Bought."'))

    found = files.run("plan", "--url", pinned.url, code=1)

    assert "doc" in found
    assert "field added" not in found


@pytest.mark.parametrize(("subject", "expected"), [("item", "item"), (":.:item", ":.:item"), (":.c:item", "item")])
def test_a_reference_by_subject_belongs_to_the_context(files, record, service, subject, expected):
    """A reference without a version names a subject as seen from the context of its schema."""
    files.write(item__avsc=record("a", name="Item"), order__avsc=record("x").replace('"long"', '"Item"'))
    files.put(
        "strata.yaml",
        "subjects: [{name: order, context: c, file: order.avsc, "
        f"references: [{{name: Item, subject: '{subject}'}}]}}, "
        "{name: item, context: c, file: item.avsc}, {name: item, file: item.avsc}]",
    )
    files.run("check", code=0)
    files.run("apply", "--url", service.url, code=0)

    assert expected == service.get("/subjects/:.c:order/versions/1")["references"][0]["subject"]


PACKAGED = {
    "proto/acme/order/v1/service.proto": "package acme.order.v1;",
    "proto/acme/pay/v1/service.proto": 'package acme.pay.v1; import "acme/order/v1/service.proto";',
    "proto/acme/pay/v1/payments-value.proto": "package acme.pay.v1;",
    "schemas/orders.proto": "package acme.order.v1;",
    "schemas/plain.proto": "",
    "json/address.schema.json": None,
}


def write_packages(files):
    """Write a tree as buf lays it out, and other files."""
    for name, head in PACKAGED.items():
        files.put(name, "{}" if head is None else f'syntax = "proto3"; {head} message M {{ int64 a = 1; }}')


def test_a_file_in_the_folder_of_its_package_is_the_subject_of_its_import(files, monkeypatch):
    """Without a manifest, a tree with a folder for each package has no name twice, wherever the command runs."""
    write_packages(files)

    assert {
        "acme/order/v1/service.proto": "proto/acme/order/v1/service.proto",
        "acme/pay/v1/service.proto": "proto/acme/pay/v1/service.proto",
        "payments-value": "proto/acme/pay/v1/payments-value.proto",
        "orders": "schemas/orders.proto",
        "plain": "schemas/plain.proto",
        "address": "json/address.schema.json",
    } == checked(files)
    files.commit()
    monkeypatch.chdir(files.root / "proto/acme/order/v1")
    assert {"acme/order/v1/service.proto": "service.proto"} == checked(files, "--against=HEAD")


def test_a_name_from_before_is_pointed_out(files, service):
    """If the registry knows a file by its plain name, the check says how to keep that name, and does not pass."""
    write_packages(files)
    service.register("service", 'syntax = "proto3"; message M { string a = 1; }', schemaType="PROTOBUF")

    found = files.run("check", "--against", service.url, code=2)

    assert "service.proto:1:1: unjudged: The file is the subject acme/order/v1/service.proto" in found
    assert "subjects: [{name: service, file: proto/acme/order/v1/service.proto}]" in found
    files.put("strata.yaml", "subjects: [{name: service, file: proto/acme/order/v1/service.proto}]")
    assert "FIELD_SCALAR_KIND_CHANGED" in files.run("check", "--against", service.url, code=1)


def test_two_files_of_one_name_say_the_way_out(files, record):
    """Where default names are not enough, the error has a manifest that names the files apart."""
    files.write(a___order__avsc=record("a"), b___order__avsc=record("a", name="Other"))

    found = files.run("check", code=2)

    assert "a/order.avsc" in found
    manifest = found.strip().rpartition("such as ")[2]
    files.put("strata.yaml", manifest)
    assert {"a.order": "a/order.avsc", "b.order": "b/order.avsc"} == checked(files)


def test_a_stem_is_the_default_name(files):
    """A template names a file as no template would, also if its ending has two parts."""
    files.put("a/address.schema.json", "{}")
    before = checked(files)
    files.put("strata.yaml", "subjects: [{name: '{stem}', files: '**/*.json'}]")

    assert {"address": "a/address.schema.json"} == before == checked(files)


BROKEN = [
    ("broken.avsc", '{\n  "type": "record",\n  "name" "X"\n}', "broken.avsc:3:10: error: ", "INVALID_SCHEMA"),
    ("broken.schema.json", '{\n  "title": "X",,\n}', "broken.schema.json:2:16: error: ", "INVALID_SCHEMA"),
    ("broken.schema.json", '{"type": "object"}', "broken.schema.json:1:1: error: ", "NO_NAME"),
]


@pytest.mark.parametrize(("file", "text", "place", "rule"), BROKEN, ids=[f"{row[0]} {row[3]}" for row in BROKEN])
def test_a_text_without_a_name_hides_nothing_else(files, record, service, file, text, place, rule):
    """Under `{fullname}` a text that cannot be parsed is reported at its place, and others are judged."""
    files.write(order__avsc=record("a", name="Order"), name__avsc=record("a", name="X"))
    files.put("strata.yaml", "subjects: [{name: '{fullname}', files: '*'}]")
    files.commit()
    files.write(order__avsc=record("b", name="Order"))
    (files.root / "name.avsc").rename(files.root / file)
    files.put(file, text)

    found = files.run("check", "--against=HEAD", code=1)
    planned = files.run("plan", "--url", service.url, code=2)

    assert [place, rule] == [next(line for line in found.splitlines() if rule in line)[: len(place)], rule]
    assert "order.avsc:5:6: error" in found
    assert "+ register Order version 1: new subject" in planned
    assert place.replace("error: ", "") in planned or f"{file} has no {{fullname}}" in planned
