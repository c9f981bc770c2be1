"""Protobuf schemas that stand in the log in an earlier normal form of options are found by requests in the present one.

Earlier versions kept dots and brackets in options, merged the statements of unknown ones, and wrote repeated extensions
after options with dots.
"""

import pytest

HEAD = """syntax = "proto3";

import "google/protobuf/descriptor.proto";

message Rule {
  int32 max = 1;
  repeated string tag = 2;
  .Rule item = 3;
}
message M {
  string a = 1 [%s];
}

extend .google.protobuf.FieldOptions {
  .Rule rule = 50001;
  repeated string note = 50002;
  repeated .Rule rules = 50003;
}
"""
FORMS = {  # as clients write it, in the earlier and in the present normal form
    "dots": (
        "(rule).item.max = 1",
        "(rule).item.max = 1",
        "(rule) = {\n    item: {\n      max: 1\n    }\n  }",
    ),
    "brackets": (
        '(rules) = {tag: ["t"] item: {tag: []}}',
        '(rules) = {\n    item: {\n      tag: [\n      ]\n    },\n    tag: [\n      "t"\n    ]\n  }',
        '(rules) = {\n    item: {\n    },\n    tag: "t"\n  }',
    ),
    "order": (
        '(rule).max = 1, (note) = "n", deprecated = true',
        '\n    deprecated = true,\n    (rule).max = 1,\n    (note) = "n"\n  ',
        '\n    deprecated = true,\n    (note) = "n",\n    (rule) = {\n      max: 1\n    }\n  ',
    ),
    "unknown option": (
        "(x).s.min = 1, (x).s = {max: 2}",
        "(x) = {\n    s: [\n      {\n        min: 1\n      },\n      {\n        max: 2\n      }\n    ]\n  }",
        "\n    (x).s.min = 1,\n    (x).s = {\n      max: 2\n    }\n  ",
    ),
}


def _requests(text):
    body = {"schema": text, "schemaType": "PROTOBUF"}
    return (
        ("/subjects/s?normalize=true", body),
        ("/subjects/s", body),
        ("/subjects/s/versions?normalize=true", body),
        ("/subjects/s/versions", body),
    )


@pytest.mark.parametrize("stored", [1, 2], ids=["earlier", "present"])
@pytest.mark.parametrize("forms", FORMS.values(), ids=FORMS.keys())
def test_either_normal_form_is_found(api, forms, stored):
    """A look-up and a registration in any form answer with the stored version, its id and its GUID."""
    written, earlier, present = (HEAD % form for form in forms)
    api.placed("s", (earlier, present)[stored - 1], schemaType="PROTOBUF")
    version = api.get("/subjects/s/versions/1")[1]
    asked = [*_requests(earlier), *_requests(present), *_requests(written)[::2]]

    assert (earlier, present)[stored - 1] == version["schema"]
    for path, body in asked:
        status, answer = api.post(path, body)
        assert (200, version["id"], 1, version["guid"]) == (status, *map(answer.get, ("id", "version", "guid"))), path
    assert [1] == api.get("/subjects/s/versions")[1]


@pytest.mark.parametrize("forms", FORMS.values(), ids=FORMS.keys())
def test_the_present_normal_form_is_stored(api, forms):
    """A registration with `normalize` stores the present form."""
    written, _, present = (HEAD % form for form in forms)
    api.placed("s", written, "?normalize=true", schemaType="PROTOBUF")

    assert present == api.get("/subjects/s/versions/1")[1]["schema"]
