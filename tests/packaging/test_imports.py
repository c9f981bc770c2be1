"""The package has no import cycle, and each import contract of `pyproject.toml` catches a planted violation."""

import re
import shutil
import subprocess
import sys
import tomllib
from copy import deepcopy
from importlib.metadata import packages_distributions
from itertools import pairwise
from pathlib import Path

import pytest

from strata.imports import deferred

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LINT = Path(sys.executable).with_name("lint-imports")


@pytest.fixture(scope="module")
def graph():
    """Return the graph that the linter makes. Its threads must not start before the processes of tests fork."""
    import grimp

    return grimp.build_graph("strata", include_external_packages=True, cache_dir=None)


@pytest.fixture(scope="module")
def is_kept():
    """Return a function that says whether a contract holds for a graph, by the linter's own class of contracts."""
    from importlinter.application.use_cases import read_user_options
    from importlinter.configuration import configure
    from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
    from importlinter.contracts.forbidden import ForbiddenContract
    from importlinter.contracts.independence import IndependenceContract
    from importlinter.contracts.layers import LayersContract

    classes = {
        "acyclic_siblings": AcyclicSiblingsContract,
        "forbidden": ForbiddenContract,
        "independence": IndependenceContract,
        "layers": LayersContract,
    }
    configure()
    read = read_user_options(str(ROOT / "pyproject.toml"))
    settings = {**read.session_options, "root_packages": ["strata"]}
    options = {one["name"]: one for one in read.contracts_options}

    def check(contract, graph):
        made = classes[contract["type"]](contract["name"], settings, options[contract["name"]])
        return made.check(deepcopy(graph), verbose=False).kept  # it changes the graph

    return check


@pytest.fixture(scope="module")
def imports(graph):
    """Return the modules of the package, each with those that it imports: at its top, in functions and for types."""
    ours = {module for module in graph.modules if module.split(".")[0] == "strata"}
    return {module: graph.find_modules_directly_imported_by(module) & ours for module in ours}


def cycles(imports):
    """Return the groups of modules that import each other, directly or through others."""

    def reached(start):
        seen, left = set(), [start]
        while left:
            left.extend(imports[left.pop()] - seen)
            seen.update(left)
        return seen

    reach = {module: reached(module) for module in imports}
    return {frozenset(other for other in reach[one] if one in reach[other]) for one in imports if one in reach[one]}


@pytest.mark.parametrize(
    ("imports", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, set()),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, {frozenset("ab")}),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, {frozenset("abc")}),
        ({"a": {"a"}}, {frozenset("a")}),
    ],
    ids=["none", "two", "three", "itself"],
)
def test_a_cycle_is_found(imports, expected):
    """The search finds cycles of any length, and nothing else."""
    assert expected == cycles(imports)


def test_no_module_imports_itself_through_others(imports):
    """No import closes a cycle, wherever it stands: at the top of a module, in a function or under TYPE_CHECKING."""
    assert len(imports) > 200
    assert set() == cycles(imports)


def matching(pattern, modules):
    """Return the modules that match a module expression of import-linter, the shortest name first."""
    words = {"**": r"\w+(?:\.\w+)*", "*": r"\w+"}
    expression = re.compile(r"\.".join(words.get(part, re.escape(part)) for part in pattern.split(".")))
    return sorted(
        (module for module in modules if expression.fullmatch(module)), key=lambda name: (name.count("."), name)
    )


def first_in_each_package(modules):
    """Return the first module of each package among modules."""
    first = {}
    for module in modules:
        first.setdefault(".".join(module.split(".")[:2]), module)
    return list(first.values())


def layer_modules(layer):
    """Return the modules of a layer, which are separated by `|` or `:`; parentheses mark one that may be missing."""
    return [name.strip(" ()") for name in re.split(r"[|:]", layer)]


def layer_violations(contract, modules):
    """Yield an import of the highest layer by the lowest, and of a neighbor in one layer, for each container."""
    layers = [layer_modules(layer) for layer in contract["layers"]]
    wrong = [(layers[-1][0], layers[0][0])]
    wrong += [tuple(layer_modules(layer)[:2]) for layer in contract["layers"] if "|" in layer][:1]
    containers = [f"{one}." for pattern in contract.get("containers", []) for one in matching(pattern, modules)]
    for container in containers or [""]:
        yield from ((container + importer, container + imported) for importer, imported in wrong)


def forbidden_violations(contract, modules):
    """Yield an import of the first forbidden module by a module of each source package."""
    pattern = contract["forbidden_modules"][0]
    target = matching(pattern, modules)[0] if "*" in pattern else pattern
    sources = [one for source in contract["source_modules"] for one in matching(source, modules)]
    ignored = [line.split(" -> ") for line in contract.get("ignore_imports", [])]
    allowed = {one for importer, what in ignored if what in ("*", "**", target) for one in matching(importer, modules)}
    yield from ((one, target) for one in first_in_each_package([one for one in sources if one not in allowed]))


def independence_violations(contract, modules):
    """Yield an import of each independent module by the next one."""
    independent = [module for pattern in contract["modules"] for module in matching(pattern, modules)]
    yield from pairwise([*independent, independent[0]])


def acyclic_violations(contract, modules):
    """Yield each ancestor, and nothing for the import: the test knows what its children import."""
    yield from ((one, None) for pattern in contract["ancestors"] for one in matching(pattern, modules))


def reverse_import(graph, ancestor):
    """Return the reverse of an import between two children of a package."""
    children = graph.find_children(ancestor)
    return min(
        (imported, importer)
        for importer in children
        for imported in children - {importer}
        if graph.direct_import_exists(importer=importer, imported=imported, as_packages=True)
    )


VIOLATIONS = {
    "acyclic_siblings": acyclic_violations,
    "forbidden": forbidden_violations,
    "independence": independence_violations,
    "layers": layer_violations,
}


def all_violations():
    """Yield the rows of the test: a contract, the module that gets an import, and the import."""
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for folder in (ROOT / "strata").iterdir()
        for path in (folder.rglob("*.py") if folder.is_dir() else folder.parent.glob("*.py"))
    ]
    for contract in CONTRACTS:
        for importer, imported in VIOLATIONS[contract["type"]](contract, modules):
            if imported not in modules or importer in modules:
                yield pytest.param(contract, importer, imported, id=f"{contract['name']}: {importer} -> {imported}")


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Return a folder with a copy of the package and its contracts."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(
        ROOT / "strata", folder / "strata", ignore=shutil.ignore_patterns("__pycache__", "jvm", "*.jar", "*.js")
    )
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def broken_contracts(folder):
    """Return the names of the contracts that the package in a folder breaks."""
    done = subprocess.run(
        [LINT, "--no-logo"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    broken = re.findall(r"^(.+) BROKEN\b", done.stdout, re.MULTILINE)
    assert bool(broken) == bool(done.returncode), done.stdout + done.stderr
    return broken


@pytest.mark.slow
def test_a_line_in_a_file_breaks_a_contract(copied):
    """One forbidden import in a copy of the package makes `lint-imports` fail, and name the contract."""
    contract, importer, imported = next(row.values for row in all_violations() if row.values[2])
    path = copied / importer.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = file.read_text()
    file.write_text(f"{text}\nimport {imported}\n")
    try:
        assert contract["name"] in broken_contracts(copied)
    finally:
        file.write_text(text)


@pytest.mark.parametrize("contract", CONTRACTS, ids=[contract["name"] for contract in CONTRACTS])
def test_each_contract_is_kept(is_kept, graph, contract):
    """Without a planted violation, the contract is kept."""
    assert is_kept(contract, graph)


@pytest.mark.parametrize(("contract", "importer", "imported"), [*all_violations()])
def test_a_planted_violation_breaks_its_contract(is_kept, graph, contract, importer, imported):
    """One forbidden import among those of the package breaks the contract."""
    if imported is None:
        importer, imported = reverse_import(graph, importer)
    assert not graph.direct_import_exists(importer=importer, imported=imported)
    graph.add_import(importer=importer, imported=imported)
    try:
        assert not is_kept(contract, graph)
    finally:
        graph.remove_import(importer=importer, imported=imported)


_STARTS = {
    "annotated_types": "any",
    "anyio": "any",  # of Starlette
    "click": "any",
    "confluent_kafka": "kafka",
    "google": "any",
    "google_crc32c": "kafka",  # of record batches
    "httptools": "any",
    "immutables": "any",
    "markupsafe": "any",
    "orjson": "any",
    "pydantic": "any",
    "pydantic_core": "any",
    "python_multipart": "any",
    "sqlalchemy": "sql",
    "starlette": "any",
    "typing_extensions": "any",
    "typing_inspection": "any",
    "uvicorn": "any",
}
"""The packages of others that a start imports, by the log whose nodes need them."""
_OWN = {
    "command",
    "compat",
    "imports",
    "properties",
    "registry",
    "storage",
    "strict_json",
}
_UNNEEDED = {
    "jinja2",
    "sqlalchemy.orm",
    "strata.compat.avro",
    "strata.compat.check",
    "strata.compat.difference",
    "strata.compat.json_schema",
    "strata.compat.logical",
    "strata.compat.protobuf",
    "strata.compat.tags",
    "strata.compat.witness",
    "strata.registry.api.openapi",
    "strata.registry.features.access.bearer",
    "strata.registry.features.access.code_flow",
    "strata.registry.features.decoding.view",
    "strata.registry.features.exporters.runner",
    "strata.registry.features.pages.views.difference",
    "strata.registry.features.standby.follower",
    "strata.registry.features.standby.sources",
    "strata.registry.http.node_calls",
    "strata.registry.transfer.rest",
}
"""What a start does not wait for: it is imported at its first use, and what schemas need right after the start."""


_FORKED_STARTS = """
import os
import sys

import strata.command
import strata.registry.commands.cli


def forked(action):
    if os.fork() == 0:
        action()
        print(*sys.modules, flush=True)
        os._exit(0)
    os.wait()


def log():
    from click.testing import CliRunner

    assert 2 == CliRunner().invoke(strata.registry.commands.cli.main, ["log", "sqlite:////none/none.db"]).exit_code


forked(log)
import strata.registry.server

for name in "sql", "kafka":
    forked(lambda: __import__(f"strata.storage.{name}.log"))
"""


@pytest.fixture(scope="module")
def starts():
    """Return the modules that a command has imported, and a start, by log: processes that share what comes before."""
    done = subprocess.run([sys.executable, "-c", _FORKED_STARTS], capture_output=True, text=True, check=True)
    return dict(zip(("command", "sql", "kafka"), map(set, map(str.split, done.stdout.splitlines())), strict=True))


@pytest.mark.parametrize("log", ["sql", "kafka"])
def test_a_start_imports_only_what_serving_needs(starts, log):
    """A node without TLS starts without the packages of other logs, of the clients and of the OpenAPI document."""
    loaded = starts[log]
    packages, installed = {name.partition(".")[0] for name in loaded}, packages_distributions()

    others = {name for name in packages if name in installed and not name.startswith("_")} - {"strata"}
    assert {name for name, need in _STARTS.items() if need in ("any", log)} == others
    assert {name.split(".")[1] for name in loaded if name.startswith("strata.")} == _OWN
    assert _UNNEEDED.isdisjoint(loaded)
    assert "strata.registry.app" in loaded


_SCHEMAS = """
import sys
from strata.compat import check, tags
from strata.compat.check import Previous
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.schema import SchemaFormat
from strata.registry.core import parsing

texts = {"AVRO": '{"type":"record","name":"r","fields":[]}', "JSON": '{"type":"object"}',
         "PROTOBUF": 'syntax = "proto3"; message M { int32 a = 1; }'}
parsing.load()
before = set(sys.modules)
for name, text in texts.items():
    row = FORMATS[SchemaFormat(name)]
    schema = row.parse(text, strict=True)
    row.normalize(schema), row.equivalent(schema, schema), tags.tags_of(schema), row.refusals(schema)
    check.check(schema, [Previous(1, schema)], Level.FULL_TRANSITIVE)
print(*sorted(name for name in sys.modules.keys() - before if name.startswith("strata.")))
"""


def test_the_first_schema_imports_nothing():
    """What a node imports right after its start is all that parsing and checking schemas of the three formats needs."""
    done = subprocess.run([sys.executable, "-c", _SCHEMAS], capture_output=True, text=True, check=True)

    assert [] == done.stdout.split()


def test_a_deferred_module_is_imported_at_its_first_use(tmp_path, monkeypatch):
    """What stands for a module imports nothing; the first use of a name imports it, and puts it in its place."""
    (tmp_path / "a_deferred_module.py").write_text("number = 1\n")
    user = {"module": deferred("a_deferred_module"), "other": 0}
    monkeypatch.syspath_prepend(tmp_path)
    module, missing = deferred("a_deferred_module"), deferred("a_missing_module")
    assert "a_deferred_module" not in sys.modules

    assert 1 == module.number
    assert 1 == eval("module.number", user)
    assert (sys.modules["a_deferred_module"], 0) == (user["module"], user["other"])
    monkeypatch.setattr(sys.modules["a_deferred_module"], "number", 2)
    assert 2 == module.number == eval("module.number", user)
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = module.other
    with pytest.raises(ModuleNotFoundError, match="a_missing_module"):
        _ = missing.number


def test_other_commands_do_not_load_the_server(starts):
    """A command that serves nothing starts without FastAPI and uvicorn, which take longer than most commands."""
    assert {"fastapi", "uvicorn", "strata.registry.server"}.isdisjoint(starts["command"])


def test_no_requirement_brings_what_nothing_uses():
    """Requirements name what is used themselves, not an extra of another package, but for these two."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {one.partition("]")[0] for many in project["optional-dependencies"].values() for one in many if "[" in one}

    assert {"pyjwt[crypto", "psycopg[binary"} == {one for one in extras if not one.startswith("strata-registry")}
