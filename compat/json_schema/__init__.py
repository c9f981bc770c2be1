"""JSON Schema as the reference reads and compares it: drafts 4, 6, 7, 2019-09 and 2020-12.

`json_text`: reading and printing · `dialects`: the dialect by `$schema` · `model`: the nodes · `documents`: resolution
of `$ref` · `loader`: JSON to model · `parser`: text to schema, `normalize` · `rules`: reader against writer, with
`objects`, `arrays`, `content`, `combined` and `findings` · `comparison`: the state of a comparison · `wording`: the
messages for a finding.
"""

from strata.imports import require

require("json", "strata.compat.json_schema", "jsonschema_rs")
