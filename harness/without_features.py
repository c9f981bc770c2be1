"""A plugin of pytest that takes features out of every registry that a test makes in its own process.

`pytest -p harness.without_features --without=search,keys tests/registry`
"""

import pytest

__all__ = ["pytest_addoption", "pytest_configure"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--without", default="", help="the features to take out, separated by commas")


def pytest_configure(config: pytest.Config) -> None:
    """Take them out."""
    from strata.registry import app

    names = [name for name in config.getoption("--without").split(",") if name]
    known = {feature.name for feature in app.FEATURES}
    if unknown := set(names) - known:
        raise pytest.UsageError(f"no such feature: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    rest = tuple(feature for feature in app.FEATURES if feature.name not in names)
    defaults = app.create_app.__kwdefaults__ or {}
    assert defaults["features"] is app.FEATURES
    defaults["features"] = rest
