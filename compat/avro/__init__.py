"""Avro schemas as Avro Java 1.12 reads, prints and compares them.

`model`: the nodes · `json_text`, `java_numbers`: the JSON dialect · `names`: the legal names · `parser`: text to model,
with `defaults` for the values of fields and `known_fields` for those read before · `printer`: model to canonical text ·
`normalizer` · `equivalence` · `rules`: reader against writer, with `findings` and `wording` for the messages.
"""
