"""Renders templates. Whatever a schema or a name holds appears as text.

Jinja2 escapes all values. In addition, control characters and characters that change the direction of the text around
them appear as their code point.
"""

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from strata.registry.api.views.addresses import ADDRESSES
from strata.registry.features.pages.actions import ACTIONS
from strata.registry.features.pages.texts import plain_text
from strata.storage.records import DEFAULT_CONTEXT, context_of

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render"]


def render(template: str, values: Mapping[str, object]) -> bytes:
    """Return a page.

    Args:
        template: the name of the template.
        values: what it shows.
    """
    return _environment().get_template(template).render(values).encode(errors="replace")


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # a node that shows no page starts without it

    made = Environment(
        loader=PackageLoader("strata.registry.features.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    made.globals.update(ADDRESSES, page_actions=ACTIONS)
    made.filters["pair"] = lambda value: (value, value)
    made.filters.update(
        exact=_exact,
        moment=_moment,
        milliseconds=_milliseconds,
        context=context_of,
        own_name=_own_name,
        shortened=_shortened,
        quoted=_quoted,
        json=_json,
        shell=shlex.quote,
    )
    return made


def _finalized(value: object) -> object:
    return plain_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _exact(text: str) -> Markup:
    """Return a text as it is, escaped: the value of a field that a form sends back."""
    return escape(text)


def _moment(milliseconds: int) -> str:
    """Return a time as `2026-11-22 17:30:40 UTC`; the log may hold any number."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)


def _milliseconds(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp() * 1000)


def _own_name(subject: str) -> str:
    context = context_of(subject)
    return subject if context == DEFAULT_CONTEXT else subject.removeprefix(f":{context}:")


def _quoted(text: str) -> str:
    """Return a text as a literal of Python, Java, Scala and JSON."""
    return json.dumps(text)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _shortened(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[:most] + "…"
