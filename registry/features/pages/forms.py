"""The forms that pages send, and the check that one of our own pages sent them."""

from http import HTTPStatus

from python_multipart.exceptions import FormParserError
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from strata.registry.core import errors
from strata.registry.core.errors import RegistryError
from strata.registry.features.pages.sessions import Session, Sessions
from strata.registry.http.asgi import Scope
from strata.registry.http.exchange import Exchange

__all__ = ["TOKEN", "Form", "read_form"]

TOKEN = "form_token"  # noqa: S105 - the name of a field
_MOST_FIELDS = 500
_OWN = (b"same-origin", b"none")


class Form:
    """The fields of a form.

    Args:
        data: the fields as Starlette reads them.
        files: the contents of uploaded files by field.
    """

    def __init__(self, data: FormData, files: dict[str, bytes]) -> None:
        self._data, self._files = data, files

    def text(self, name: str) -> str:
        """Return a field; empty if the form has none. Line ends are those of a text, not of a form."""
        value = self._data.get(name, "")
        return value.replace("\r\n", "\n") if isinstance(value, str) else ""

    def file(self, name: str) -> str:
        """Return an uploaded text; empty if there is none.

        Raises:
            RegistryError: 400 if it is not UTF-8.
        """
        try:
            return self._files.get(name, b"").decode("utf-8-sig")
        except UnicodeDecodeError:
            raise errors.unreadable_body("The uploaded file is not a text in UTF-8") from None


async def read_form(exchange: Exchange, sessions: Sessions, session: Session | None) -> Form:
    """Return the form of a request, if a page of this registry has sent it for this session.

    Raises:
        RegistryError: 403 if not; 400 if it cannot be read.
    """
    _check_origin(exchange.scope)
    try:
        data = await Request(exchange.scope, exchange.receive).form(max_fields=_MOST_FIELDS, max_files=5)
        files = {name: await upload.read() for name, upload in data.items() if isinstance(upload, UploadFile)}
        await data.close()
    except (FormParserError, HTTPException, MultiPartException, UnicodeDecodeError):
        raise errors.unreadable_body("The form cannot be read") from None
    form = Form(data, files)
    if session is None or not sessions.accepts(session, form.text(TOKEN)):
        raise _forbidden("the form is too old, or comes from elsewhere. Load the page again")
    return form


def _check_origin(scope: Scope) -> None:
    """Check that a page of this very origin sent a request; the settings that let others write do not count here."""
    headers = dict(scope["headers"])
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None and site.strip().lower() not in _OWN:
        raise _forbidden("a page of another site sent the form")
    if origin is not None and origin.lower().partition(b"://")[2] != headers.get(b"host", b"").lower():
        raise _forbidden("a page of another site sent the form")


def _forbidden(reason: str) -> RegistryError:
    return errors.http_error(HTTPStatus.FORBIDDEN, f"Forbidden: {reason}")
