"""The commit that a run tests: that of the working tree, with a mark if files differ from it."""

import subprocess
from functools import cache
from pathlib import Path

__all__ = ["current"]

_ROOT = Path(__file__).parent.parent
_CODE = ("strata", "registry", "compat", "storage", "faults", "harness")


@cache
def current() -> str:
    """Return the commit, followed by `-dirty` if the code differs from it; `unknown` outside a repository."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    if not commit:
        return "unknown"
    return f"{commit}-dirty" if _git("status", "--porcelain", "--", *_CODE) else commit


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(_ROOT), *arguments], check=False, capture_output=True, text=True)  # noqa: S607
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
