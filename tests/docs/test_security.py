"""The threat model names what shows its claims."""

import re
from pathlib import Path

from strata.registry.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
_FLAG, _FILE = re.compile(r"`--([a-z-]+)`"), re.compile(r"`(tests/[\w/]+\.py)`|\]\(([\w/.]+)\)")


def test_what_the_threat_model_names_is_there():
    """Each setting and each file of SECURITY.md exists, and each defence has its test."""
    text = (ROOT / "SECURITY.md").read_text()
    flags = {flag.replace("-", "_") for flag in _FLAG.findall(text)}
    files = {one or other for one, other in _FILE.findall(text)}
    defences = [line for line in text.splitlines() if line.startswith("| ")][2:]

    assert set() == flags - set(Settings.model_fields)
    assert [] == [name for name in sorted(files) if not (ROOT / name).is_file()]
    assert [] == [line for line in defences if "`tests/" not in line.rpartition(" | ")[2]]
    assert len(defences) > 10
