"""Names of users and groups, which come from files, tokens, certificates and headers."""

__all__ = ["InvalidName", "check_name"]

_MOST_CHARACTERS = 512
_EVERY = "*"


class InvalidName(ValueError):
    """A name that no principal may have; the message says what is expected."""


def check_name(name: object) -> str:
    """Return the name of a user or group, if it can be one.

    Rules, log lines and audit lines hold names, and a rule for `User:*` holds for everyone; so a name consists of
    printable characters, without space at either end, and is not `*`.

    Raises:
        InvalidName: if it cannot be one.
    """
    if not isinstance(name, str):
        raise InvalidName(f"expected text, got {type(name).__name__}")
    if not name or len(name) > _MOST_CHARACTERS or not name.isprintable() or name != name.strip() or name == _EVERY:
        raise InvalidName(f"expected a name of 1 to {_MOST_CHARACTERS} printable characters, other than {_EVERY}")
    return name
