"""The references around a version as a drawing: what refers to it on the left, what it refers to on the right.

The drawing is SVG made here, of text and lines only; the style sheet gives the colours. Nodes are bounded, and the last
node of a crowded layer says how many more there are.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from strata.registry.api.views.addresses import version_address
from strata.registry.api.views.view import Page
from strata.registry.core.lookup import LATEST
from strata.registry.core.rights.visibility import is_readable
from strata.registry.features.pages.texts import plain_text
from strata.storage.records import DEFAULT_CONTEXT, Subject, Version, context_of, qualified
from strata.storage.state import SchemaVersion, State

__all__ = ["Graph", "Node", "drawn", "reference_graph"]

_MOST_NODES: Final = 80
_MOST_IN_LAYER: Final = 12
_MOST_LAYERS: Final = 8  # on each side
_MOST_LOOKED_AT: Final = 1_000  # referrers of one version
_LONGEST_LABEL: Final = 30
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 250, 34, 60, 14, 8

Place = tuple[Subject, Version]


class _Bend(NamedTuple):
    """The place where the edges to a version cross a layer in which neither of their ends is."""

    target: Place
    layer: int


_Stop = Place | _Bend
_ARROW: Final = Markup(
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<polygon points="0 0 8 4 0 8"/></marker></defs>'
)


class Node(NamedTuple):
    """A version in the drawing; without an address it does not exist, or may not be seen."""

    label: str
    address: str | None = None
    is_center: bool = False


@dataclass
class Graph:
    """Nodes by their place, edges from the referring to the referred version, and the layer of each node."""

    nodes: dict[Place, Node] = field(default_factory=dict)
    edges: dict[tuple[Place, Place], None] = field(default_factory=dict)
    layers: dict[Place, int] = field(default_factory=dict)
    more: dict[int, int] = field(default_factory=dict)  # how many nodes a layer leaves out


def reference_graph(page: Page, entry: SchemaVersion) -> Graph | None:
    """Return the versions around one, as far as the person may see them; None if there are none."""
    center = entry.subject, entry.version
    graph = Graph({center: _node(entry, is_center=True)}, layers={center: 0})
    _walk(graph, center, lambda place: _targets(page.state, place), page, 1)
    _walk(graph, center, lambda place: _referrers(page, place), page, -1)
    _spread(graph)
    return graph if len(graph.nodes) > 1 else None


def _spread(graph: Graph) -> None:
    """Move nodes away from the center until each edge goes from left to right."""
    for _ in range(_MOST_LAYERS):
        for node, other in graph.edges:
            if graph.layers[other] <= graph.layers[node]:
                is_right = graph.layers[node] >= 0
                graph.layers[other if is_right else node] = (
                    graph.layers[node] + 1 if is_right else graph.layers[other] - 1
                )


def _walk(graph: Graph, center: Place, neighbours: Callable[[Place], Iterable[Place]], page: Page, step: int) -> None:
    """Add the versions on one side, nearest first; `step` is 1 for the right side and -1 for the left."""
    layer, number = [center], 0
    while layer and abs(number) < _MOST_LAYERS:
        number += step
        following: list[Place] = []
        for place in layer:
            for other in neighbours(place):
                if other not in graph.nodes:
                    if len(following) >= _MOST_IN_LAYER or len(graph.nodes) >= _MOST_NODES:
                        graph.more[number] = graph.more.get(number, 0) + 1
                        continue
                    graph.nodes[other], graph.layers[other] = _seen(page, other), number
                    following.append(other)
                graph.edges[(place, other) if step > 0 else (other, place)] = None
        layer = following


def _targets(state: State, place: Place) -> Iterable[Place]:
    entry = state.version(*place)
    for reference in entry.schema.value.references if entry else ():
        subject = Subject(qualified(reference.subject, context_of(place[0])))
        latest = state.latest(subject) if reference.version == LATEST else None
        yield subject, latest.version if latest else Version(reference.version)


def _referrers(page: Page, place: Place) -> Iterable[Place]:
    referrers = page.state.referred_by(*place)[:_MOST_LOOKED_AT]
    return [(entry.subject, entry.version) for entry in referrers if page.exchange.readable(entry.subject)]


def _seen(page: Page, place: Place) -> Node:
    entry = page.state.version(*place)
    if entry is None or not is_readable(page.access, page.state, *place):
        return Node(f"{_label(place)} (not there)")
    return _node(entry)


def _node(entry: SchemaVersion, *, is_center: bool = False) -> Node:
    address = version_address(entry.subject, entry.version)
    return Node(_label((entry.subject, entry.version)), address, is_center)


def _label(place: Place) -> str:
    subject, version = place
    context = context_of(subject)
    name = subject if context == DEFAULT_CONTEXT else subject.removeprefix(f":{context}:") + f" ({context})"
    return f"{name or '(empty name)'} v{version}"


# --- drawing


def drawn(graph: Graph) -> Markup:
    """Return a graph as an SVG element, whose nodes are links; every text is escaped."""
    routes = _routes(graph)
    columns = _columns(graph, routes)
    spots = {stop: _spot(x, y) for x, column in enumerate(columns) for y, stop in enumerate(column)}
    first = min(graph.layers.values())
    rows = max(len(column) + (graph.more.get(first + x, 0) > 0) for x, column in enumerate(columns))
    width = len(columns) * (_WIDTH + _GAP_X) - _GAP_X + 2 * _MARGIN
    height = rows * (_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _MARGIN
    lines = [_line([spots[stop] for stop in route]) for route in routes]
    boxes = [_box(node, spots[place]) for place, node in graph.nodes.items()]
    more = [
        _more(count, _spot(layer - first, len(columns[layer - first])))
        for layer, count in graph.more.items()
        if layer - first in range(len(columns))
    ]
    return Markup(
        '<svg class="graph" role="group" aria-labelledby="graph-title graph-text" width="{0}" height="{1}" '
        'viewBox="0 0 {0} {1}"><title id="graph-title">References</title><desc id="graph-text">{2}</desc>{3}{4}</svg>'
    ).format(width, height, _shown(_description(graph)), _ARROW, Markup("").join([*lines, *boxes, *more]))


def _routes(graph: Graph) -> list[list[_Stop]]:
    """Return the stops of each edge: its ends, and a bend in each layer between, so that it crosses no other node.

    Edges to the same version share their bends.
    """
    routes: list[list[_Stop]] = []
    for node, other in graph.edges:
        bends = [_Bend(other, layer) for layer in range(graph.layers[node] + 1, graph.layers[other])]
        routes.append([node, *bends, other])
    return routes


def _columns(graph: Graph, routes: Iterable[Sequence[_Stop]]) -> list[list[_Stop]]:
    """Return the stops by layer, each layer in the order of its neighbours in the layer nearer to the center."""
    layers: dict[_Stop, int] = {}
    layers.update(graph.layers.items())
    near: dict[_Stop, list[_Stop]] = {}
    for route in routes:
        layers.update((stop, stop.layer) for stop in route if isinstance(stop, _Bend))
        for node, other in pairwise(route):
            near.setdefault(node, []).append(other)
            near.setdefault(other, []).append(node)
    first, last = min(layers.values()), max(layers.values())
    columns: dict[int, list[_Stop]] = {number: [] for number in range(first, last + 1)}
    for stop, number in layers.items():
        columns[number].append(stop)
    for number in sorted(columns, key=abs):
        if number:
            inner = {stop: row for row, stop in enumerate(columns[number - (1 if number > 0 else -1)])}
            columns[number].sort(
                key=lambda stop: _middle([inner[neighbor] for neighbor in near.get(stop, ()) if neighbor in inner])
            )
    return [columns[number] for number in range(first, last + 1)]


def _middle(rows: Sequence[int]) -> float:
    return sum(rows) / len(rows) if rows else 0


def _spot(column: int, row: int) -> tuple[int, int]:
    return _MARGIN + column * (_WIDTH + _GAP_X), _MARGIN + row * (_HEIGHT + _GAP_Y)


def _line(spots: Sequence[tuple[int, int]]) -> Markup:
    """Return the line of an edge along its stops, straight through the columns of its bends."""
    steps: list[str] = []
    for (x1, y1), (x2, y2) in pairwise(spots):
        from_x, to_x = (x1 + _WIDTH, x2) if x2 > x1 else (x1, x2 + _WIDTH) if x2 < x1 else (x1 + _WIDTH, x2 + _WIDTH)
        bend = from_x + _GAP_X // 2 if x2 >= x1 else from_x - _GAP_X // 2
        from_y, to_y = y1 + _HEIGHT // 2, y2 + _HEIGHT // 2
        steps.append(f"{'L' if steps else 'M'}{from_x} {from_y}C{bend} {from_y} {bend} {to_y} {to_x} {to_y}")
    return Markup('<path d="{}" marker-end="url(#arrow)"/>').format("".join(steps))


def _box(node: Node, spot: tuple[int, int]) -> Markup:
    x, y = spot
    css_class = "center" if node.is_center else "node" if node.address else "gone"
    half = _LONGEST_LABEL // 2
    shown = node.label if len(node.label) <= _LONGEST_LABEL else f"{node.label[: half - 1]}…{node.label[-half:]}"
    inner = Markup('<title>{}</title><rect x="{}" y="{}" width="{}" height="{}" rx="6"/><text x="{}" y="{}">{}</text>')
    inside = inner.format(_shown(node.label), x, y, _WIDTH, _HEIGHT, x + 10, y + _HEIGHT // 2 + 5, _shown(shown))
    if node.address is None:
        return Markup('<g class="{}">{}</g>').format(css_class, inside)
    return Markup('<a class="{}" href="{}">{}</a>').format(css_class, node.address, inside)


def _more(count: int, spot: tuple[int, int]) -> Markup:
    return Markup('<text class="more" x="{}" y="{}">and {} more</text>').format(
        spot[0] + 10, spot[1] + _HEIGHT // 2 + 5, count
    )


def _description(graph: Graph) -> str:
    """Return the edges in words, for people who do not see the drawing."""
    return ". ".join(f"{graph.nodes[node].label} refers to {graph.nodes[other].label}" for node, other in graph.edges)


def _shown(text: str) -> Markup:
    return escape(plain_text(text))
