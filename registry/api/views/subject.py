"""What the address of a page asks for: a subject, a version, a scope."""

from strata.registry.api.views.view import Page
from strata.registry.core.lookup import parse_version, version_anywhere
from strata.registry.core.rights.visibility import check_version
from strata.registry.core.subject_names import PathSubject, aliased, subject_name
from strata.storage.records import Subject
from strata.storage.state import SchemaVersion

__all__ = ["asked_subject", "asked_version"]


def asked_subject(page: Page) -> Subject:
    """Return the subject that the path of a page names, or the one that it is an alias of.

    Raises:
        RegistryError: 40301 if the name is an alias of a subject that the person has no right to.
    """
    name = subject_name(page.names["subject"])
    return aliased(page.state, PathSubject(name, page.access.check_target, page.access.describes))


def asked_version(page: Page, number: str | None = None) -> SchemaVersion:
    """Return a version of the subject that the path of a page names; soft-deleted ones are found too.

    Args:
        page: the page.
        number: the version, a number or `latest`; by default the one in the path.

    Raises:
        RegistryError: 40301 if the person may not read it, whether or not it exists; 40401 or 40402 if it does not
            exist; 42202 if it is not a version.
    """
    version = parse_version(page.names["version"] if number is None else number)
    name = asked_subject(page)
    check_version(page.access, page.state, name, version, named=page.names["subject"])
    return version_anywhere(page.state, name, version, include_deleted=True, visible=page.exchange.readable)
