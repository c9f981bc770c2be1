"""Warns about environment variables that begin with STRATA_ and are not settings, such as misspelled ones.

Kubernetes sets variables for each service of a namespace in all of its containers: for a service called `strata`, these
are `STRATA_SERVICE_HOST`, `STRATA_PORT` and others. They cause no warning.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["unknown_variables"]

_PREFIX = "STRATA_"
# Variables of other commands than `serve`, and of the project's own tests.
_OTHERS = (
    "AUTH",
    "FROM_AUTH",
    "TO_AUTH",
    "A_AUTH",
    "B_AUTH",
    "SOURCE_AUTH",
    "CA_FILE",
    "CERT_FILE",
    "KEY_FILE",
    "CACHE",
)
_SERVICE_HOST = re.compile(r"(STRATA(?:_[A-Z0-9_]+)?)_SERVICE_HOST")
_OF_A_SERVICE = (
    r"(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Return a warning for each variable that no command reads, with the setting that was probably meant.

    Args:
        names: the names of all environment variables.
    """
    ours = sorted(name for name in names if name.upper().startswith(_PREFIX))
    if not ours:
        return []
    from strata.registry.settings import Settings

    known = {name.upper() for name in (*Settings.model_fields, *_OTHERS)}
    services = {"STRATA", *(match[1] for name in ours if (match := _SERVICE_HOST.fullmatch(name)))}
    kubernetes = re.compile(rf"(?:{'|'.join(sorted(services))})_{_OF_A_SERVICE}")
    unread = [name for name in ours if name.upper().removeprefix(_PREFIX) not in known]
    return [_sentence(name, known) for name in unread if not kubernetes.fullmatch(name)]


def _sentence(name: str, known: set[str]) -> str:
    near = get_close_matches(name.upper().removeprefix(_PREFIX), sorted(known), n=1)
    advice = f"did you mean {_PREFIX}{near[0]}?" if near else "`strata serve --help` lists the settings"
    return f"the environment variable {name} is not a setting and is ignored; {advice}"
