"""The schema of a request, as the routes hand it to decisions and parsing."""

import re
from types import MappingProxyType
from typing import Final, NamedTuple

from strata.compat.entities import Tags
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.schema import SchemaFormat
from strata.storage.records import Metadata, Reference, RuleSet

__all__ = ["NO_CONTRACT", "Contract", "SchemaRequest"]

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_NO_TAGS: Final[Tags] = MappingProxyType({})


class Contract(NamedTuple):
    """The metadata and rule set of a schema; None for an absent one."""

    metadata: Metadata | None = None
    rule_set: RuleSet | None = None


NO_CONTRACT: Final = Contract()


class SchemaRequest(NamedTuple):
    """The schema of a request: a tuple, because a frozen dataclass of this size takes longer to make than its body.

    Attributes:
        text: the schema text; blank means that of the latest version.
        schema_type: the format's name on the wire.
        references: the references, in which version -1 means the latest.
        version: the version it must get; 0 if the request names none, -1 for the next one.
        schema_id: the id it must get, in mode IMPORT; None for any other registration.
        metadata: None keeps the previous version's metadata, an empty mapping removes it.
        rule_set: None keeps the previous version's rules, an empty mapping removes them.
        tags_to_add: tags to add to the text.
        tags_to_remove: tags to remove from the text.
        propagate_tags: whether to copy the tags of the previous version into the text.
        limits: how much the processing of this request may cost.
    """

    text: str
    schema_type: str = SchemaFormat.AVRO.value
    references: tuple[Reference, ...] = ()
    version: int = 0
    schema_id: int | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    tags_to_add: Tags = _NO_TAGS
    tags_to_remove: Tags = _NO_TAGS
    propagate_tags: bool = False
    limits: Limits = DEFAULT_LIMITS

    def started(self) -> "SchemaRequest":
        """Return the request with its clock started by the calling thread; a running clock is kept."""
        return self.under(self.limits.started())

    def under(self, limits: Limits) -> "SchemaRequest":
        """Return the request with other limits."""
        return self if limits is self.limits else self._replace(limits=limits)

    @property
    def contract(self) -> Contract:
        """The metadata and rules of the request itself."""
        return Contract(self.metadata or None, self.rule_set or None)

    @property
    def own_text(self) -> str | None:
        """The request's text if the answer must repeat it, which is so for a Protobuf descriptor in base64; else None.

        Clients that send descriptors cache the answer as the schema of its id, and can parse only descriptors.
        """
        descriptor = self.schema_type == SchemaFormat.PROTOBUF.value and _BASE64.fullmatch(self.text)
        return self.text if descriptor else None
