"""Avro schemas as Avro Java 1.12 reads, prints and compares them.

`model` the nodes · `json_text` and `java_numbers` the JSON dialect · `names` who may be called what · `parser` text
to model, with `defaults` for the values of fields · `printer` model to canonical text · `normalizer` · `equivalence`
· `rules` reader against writer, with `wording` for what is said of a finding.
"""
