"""A figure over time as a small line, drawn as SVG. Pure."""

from collections.abc import Sequence

from markupsafe import Markup

__all__ = ["sparkline"]

_WIDTH, _HEIGHT, _PAD = 240, 48, 3


def sparkline(values: Sequence[float], label: str) -> Markup:
    """Return an SVG element with a line through values at equal distances, from zero up.

    Args:
        values: the values, oldest first.
        label: what the line says in words, for people who do not see it.
    """
    top = max([*values, 0]) or 1
    step = _WIDTH / max(1, len(values) - 1)
    height = _HEIGHT - 2 * _PAD
    spots = [(number * step, _HEIGHT - _PAD - value / top * height) for number, value in enumerate(values)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    return Markup(
        '<svg class="sparkline" role="img" aria-label="{0}" width="{1}" height="{2}" viewBox="0 0 {1} {2}">'
        '<polyline points="{3}"/></svg>'
    ).format(label, _WIDTH, _HEIGHT, points)
