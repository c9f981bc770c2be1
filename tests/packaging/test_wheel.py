"""The wheel holds one package, `strata`, and what that needs at run time."""

import zipfile
from pathlib import Path

import pytest

from strata import __version__


@pytest.fixture(scope="module")
def files(strata_wheel):
    """Return the names of the files in the wheel."""
    with zipfile.ZipFile(strata_wheel) as wheel:
        return [name for name in wheel.namelist() if not name.endswith("/")]


def test_only_strata_is_installed(files):
    """Beside its own metadata, the wheel puts one name into site-packages."""
    assert {"strata", f"strata_registry-{__version__}.dist-info"} == {Path(name).parts[0] for name in files}


@pytest.mark.parametrize("folder", ["registry", "storage", "compat", "serdes", "spark_udfs", "gitops"])
def test_the_wheel_holds_every_module(files, folder):
    """Each Python file of a folder is in the wheel, under `strata`."""
    root = Path(__file__).resolve().parents[2]
    ours = {f"strata/{path.relative_to(root)}" for path in (root / folder).rglob("*.py")}
    assert ours == {name for name in files if name.startswith(f"strata/{folder}/") and name.endswith(".py")}


@pytest.mark.parametrize(
    "name",
    [
        "strata/py.typed",
        "strata/spark_udfs/strata-spark.jar",
        "strata/registry/api/swagger/docs.html",
        "strata/registry/features/pages/templates/base.html",
        "strata/registry/features/pages/static/strata.css",
        "strata/registry/features/pages/static/htmx.min.js",
        "strata/registry/features/pages/static/htmx.LICENSE",
        "strata/compat/json_schema/metaschemas.json",
        "strata/gitops/strata.schema.json",
    ],
)
def test_the_wheel_holds_what_is_no_python(files, name):
    """The marker of type hints, the jar, the web page, the metaschemas and the schema of manifests are in the wheel."""
    assert name in files


def test_the_wheel_holds_no_sources_of_the_jar(files):
    """Java sources stay in the repository."""
    assert [] == [name for name in files if name.endswith((".java", ".class")) or "jvm/" in name]
