"""What a schema means: parse, canonical form, normalize, compatibility.

Pure functions over text and values. No I/O, no subjects, no versions beyond the number a message has to name.
"""
