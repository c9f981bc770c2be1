"""The difference of two schemas by meaning: what changed, and what each change means for readers and writers.

One module for each format walks two schemas side by side and lists edits (`edits.py`). `compare.py` asks the checker
in both directions and attaches each of its findings to the edits that it is about. So the words on a change come from
the findings behind the verdict, and the two cannot disagree.
"""
