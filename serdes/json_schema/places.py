"""Places in a JSON Schema and in what it refers to.

Rules of this file: parsed documents, by URI; nothing is fetched.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

__all__ = ["At", "base_uri", "is_recursive", "target_of"]

Documents = Mapping[str, object]


class At(NamedTuple):
    """A place in a document."""

    uri: str
    pointer: str
    tree: Any

    def down(self, *keys: str | int) -> "At":
        """Return a place below."""
        tree, pointer = self.tree, self.pointer
        for key in keys:
            tree = tree[key]
            pointer += "/" + str(key).replace("~", "~0").replace("/", "~1")
        return At(self.uri, pointer, tree)


def base_uri(document: object, uri: str) -> str:
    """Return the base URI of a document: its `$id`, or draft 4's `id`, resolved against the URI that it is found at."""
    own = document.get("$id", document.get("id")) if isinstance(document, dict) else None
    return urljoin(uri, own) if isinstance(own, str) else uri


def target_of(documents: Documents, uri: str, reference: str) -> At | None:
    """Return the place that a `$ref` of a document leads to; None if it is not in the documents, or only an anchor."""
    for base in (uri, base_uri(documents[uri], uri)):
        document, fragment = urldefrag(urljoin(base, reference))
        known = next((uri_ for uri_, tree in documents.items() if document in (uri_, base_uri(tree, uri_))), None)
        if known is None or (fragment and not fragment.startswith("/")):
            continue
        target = At(known, "", documents[known])
        try:
            for key in fragment.split("/")[1:]:
                name = unquote(key).replace("~1", "/").replace("~0", "~")
                target = target.down(int(name) if isinstance(target.tree, list) else name)
        except (LookupError, TypeError, ValueError):
            continue
        return target
    return None


def is_recursive(documents: Documents) -> bool:
    """Return whether a schema may contain itself through references; True if that is not known."""
    around: set[int] = set()
    done: set[int] = set()

    def visit(uri: str, tree: object) -> bool:
        if not isinstance(tree, dict | list) or id(tree) in done:
            return False
        if id(tree) in around:
            return True
        around.add(id(tree))
        below = [(uri, node) for node in (tree.values() if isinstance(tree, dict) else tree)]
        if isinstance(tree, dict) and not tree.keys().isdisjoint(("$ref", "$dynamicRef", "$recursiveRef")):
            target = target_of(documents, uri, tree["$ref"]) if isinstance(tree.get("$ref"), str) else None
            if target is None:
                return True
            below.append((target.uri, target.tree))
        is_ring = any(visit(*place) for place in below)
        around.discard(id(tree))
        done.add(id(tree))
        return is_ring

    try:
        return any(visit(uri, tree) for uri, tree in documents.items())
    except RecursionError:
        return True
