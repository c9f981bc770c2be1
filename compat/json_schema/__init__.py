"""JSON Schema as the reference reads and compares it: drafts 4, 6, 7, 2019-09 and 2020-12.

`json_text` reading and printing · `dialects` what `$schema` decides · `model` the nodes · `documents` where a `$ref`
leads · `loader` JSON to model · `parser` text to schema, `normalize` · `rules` reader against writer, with `objects`,
`arrays`, `combined` and `findings` · `wording` what is said of a finding.
"""
