"""Containment: does a reader schema allow every document that a writer schema allows?

The answer is a document that shows that it does not, a proof that it does, or neither. `decision` is the entry.
`reader` turns both schemas into rules (`rules`). `solver` searches for a document that the one allows and the other
refuses, type by type (`expansion`, `numbers`, `strings`, `objects`, `arrays`). `judge` asks the validator about each
document before it is an answer, and `shrinking` makes it smaller. `languages` and `patterns` decide about strings,
`formats` says what is known about formats, `evaluation` reads a document by the rules, and `paths` leads a search to
the place of a finding.
"""
