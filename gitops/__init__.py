"""Schemas that live in Git: check, plan and apply; README.md in this folder explains the parts.

Needs the extra `gitops`, or `server`.
"""

from strata.imports import require

require("gitops", "strata.gitops", "click", "yaml")
