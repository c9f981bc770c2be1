"""The schemas of one comparison: equal ones are one object, in whichever of the two they are."""

from collections.abc import Iterable

from strata.compat.json_schema.containment import rules as r

__all__ = ["Schemas"]


class Schemas:
    """The schemas of one comparison, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[r.Rule, ...], bool | None], r.Schema] = {}
        self.everything = self.schema(())
        self.nothing = self.schema((), allows=False)

    def schema(self, rules: Iterable[r.Rule], *, allows: bool | None = None) -> r.Schema:
        """Return the schema of some rules."""
        key = tuple(dict.fromkeys(rules)), allows
        made = self._known.get(key)
        if made is None:
            made = self._known[key] = r.Schema(key[0], (True if not key[0] else None) if allows is None else allows)
        return made
