"""Avro schemas as Avro Java 1.12 reads, prints and compares them.

`model`: names and nodes · `json_text`, `java_numbers`: the JSON dialect · `parser`: text to model, with `defaults` for
the values of fields · `printer`: model to canonical text · `normalizer` · `equivalence` · `rules`: reader against
writer, with `findings` and `wording` for the messages.
"""
