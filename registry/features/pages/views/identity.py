"""A schema by its id or its GUID: the page of a version that has it, and where else it is used."""

from starlette.responses import RedirectResponse, Response

from strata.registry.api.views.addresses import page_address, version_address
from strata.registry.api.views.view import Page
from strata.registry.core import errors
from strata.registry.core.lookup import ids_of_guid, schema_by_id
from strata.registry.core.rights.visibility import readable_use, unknown_schema
from strata.registry.features.pages.views.version import shown_version
from strata.storage.records import DEFAULT_CONTEXT
from strata.storage.state import SchemaVersion

__all__ = ["find_schema", "show_guid", "show_id"]

_MOST_DIGITS = 18


def find_schema(page: Page) -> Response:
    """Return the way to the schema that a form asks for: an id, with its context, or a GUID.

    Raises:
        RegistryError: 400 if it is neither.
    """
    asked, context = page.text("of"), page.text("context")
    if asked.isascii() and asked.isdecimal() and len(asked) <= _MOST_DIGITS:
        return RedirectResponse(page_address("schemas", "ids", int(asked), context=context), 303)
    if "-" in asked or len(asked) == 32:
        return RedirectResponse(page_address("schemas", "guids", asked), 303)
    raise errors.unreadable_body(f"Expected a schema id, such as 7, or a GUID, got {asked[:100]!r}")


def show_id(page: Page) -> dict[str, object]:
    """Return the page of a version that has an id.

    Raises:
        RegistryError: 40403, or 40301 if the person may read no version that has it.
    """
    digits, context = page.names["id"], page.text("context", DEFAULT_CONTEXT)
    is_id = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
    use = _use(page, int(digits), context) if is_id else None
    if use is None:
        raise unknown_schema(page.access, digits, context)
    return shown_version(page, use)


def show_guid(page: Page) -> dict[str, object] | Response:
    """Return the page of a version that has a GUID, in the first context that holds it.

    Raises:
        RegistryError: 40403, or 40301 if the person may read no version that has it.
    """
    guid = page.names["guid"]
    places = ids_of_guid(page.state, guid)
    place = next((use for context, schema_id in places if (use := _use(page, schema_id, context))), None)
    if place is None:
        raise unknown_schema(page.access, guid)
    return RedirectResponse(version_address(place.subject, place.version), 303)


def _use(page: Page, schema_id: int, context: str) -> SchemaVersion | None:
    schema = schema_by_id(page.state, schema_id, f":{context}:")
    return readable_use(page.access, page.state, *schema) if schema else None
