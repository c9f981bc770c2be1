"""The files in deploy/ are valid, agree with each other and with the settings, routes and times of the service."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from strata.registry.app import ROUTERS
from strata.registry.http.server import _SHUTDOWN_SECONDS
from strata.registry.node.settings import LogFormat
from strata.registry.settings import Settings, load_settings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
MANIFESTS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))}
OF_OTHERS = {"kustomization", "service-monitor"}  # kinds that Kubernetes itself does not define
UNIT = (DEPLOY / "systemd/strata.service").read_text()
COMPOSE = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())
POD = MANIFESTS["deployment"]["spec"]["template"]
CONTAINER = POD["spec"]["containers"][0]
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def pod_environment():
    """Return the variables of the container; those from secrets and fields as None."""
    return {one["name"]: one.get("value") for one in CONTAINER["env"]}


def environments():
    """Return the variables that each kind of deployment sets."""
    nodes = [node for name, node in COMPOSE["services"].items() if name.startswith("strata")]
    unit = dict(re.findall(r"\b(STRATA_\w+)=(\S+)", UNIT))
    return [pod_environment(), unit, *(node["environment"] for node in nodes)]


@pytest.mark.parametrize("version", ["1.29", "1.34"])
@pytest.mark.parametrize("name", sorted(MANIFESTS.keys() - OF_OTHERS))
def test_manifests_fit_the_schemas_of_kubernetes(name, version):
    """Each manifest is valid by the schemas of Kubernetes, without unknown fields."""
    kubernetes_validate.validate(MANIFESTS[name], version, strict=True)


def test_the_kustomization_lists_the_manifests():
    """`kubectl apply -k` applies every manifest."""
    listed = {Path(name).stem for name in MANIFESTS["kustomization"]["resources"]}

    assert MANIFESTS.keys() - {"kustomization"} == listed


def test_selectors_and_ports_agree():
    """Service, budget and monitor select the pods and name ports that exist."""
    labels = POD["metadata"]["labels"]
    service, monitor = MANIFESTS["service"], MANIFESTS["service-monitor"]
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}

    assert labels == MANIFESTS["deployment"]["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert labels == MANIFESTS["disruption-budget"]["spec"]["selector"]["matchLabels"]
    assert service["metadata"]["labels"] == monitor["spec"]["selector"]["matchLabels"]
    assert {port["targetPort"] for port in service["spec"]["ports"]} == ports.keys()
    assert {one["port"] for one in monitor["spec"]["endpoints"]} <= {port["name"] for port in service["spec"]["ports"]}
    variables = pod_environment()
    assert [variables["STRATA_LISTEN"], variables["STRATA_METRICS_LISTEN"]] == [
        f"0.0.0.0:{ports['http']}",
        f"0.0.0.0:{ports['metrics']}",
    ]


def test_probes_ask_routes_that_exist():
    """Each probe asks a route of the service on its port, and the same paths are in the compose file."""
    routes = {route.path for router in ROUTERS for route in router.declared if route.method == "GET"}
    asked = {CONTAINER[probe]["httpGet"]["path"] for probe in PROBES}
    checks = [node["healthcheck"]["test"] for name, node in COMPOSE["services"].items() if "strata" in name]

    assert {"/health/live", "/health/ready"} == asked
    assert asked <= routes
    assert {"http"} == {CONTAINER[probe]["httpGet"]["port"] for probe in PROBES}
    assert all(["CMD", "strata", "health", "/health/ready"] == check for check in checks)


def test_image_user_and_paths_agree():
    """Pods and compose run the image of docs/running.md as its user, and mount what the variables name."""
    image = (DEPLOY.parent / "Dockerfile").read_text()
    user = int(re.search(r"^USER (\d+):\1$", image, re.MULTILINE)[1])
    security, mounts = (
        POD["spec"]["securityContext"],
        {one["name"]: one["mountPath"] for one in CONTAINER["volumeMounts"]},
    )
    images = {CONTAINER["image"], *(node["image"] for name, node in COMPOSE["services"].items() if "strata" in name)}
    secret = next(one["secret"] for one in POD["spec"]["volumes"] if one["name"] == "secret")

    assert [user] * 3 == [security[name] for name in ("runAsUser", "runAsGroup", "fsGroup")]
    assert {volume["name"] for volume in POD["spec"]["volumes"]} == mounts.keys()
    assert f"{mounts['secret']}/{secret['items'][0]['path']}" == pod_environment()["STRATA_NODE_SECRET"]
    assert [True] == [f"docker build -t {name} ." in (DEPLOY.parent / "docs/running.md").read_text() for name in images]


def test_every_variable_is_a_setting():
    """The deployments set only variables that the service reads."""
    known = {f"STRATA_{name.upper()}" for name in Settings.model_fields}

    assert [] == [
        name for names in environments() for name in names if name.startswith("STRATA_") and name not in known
    ]


def test_the_settings_of_the_pod_are_accepted(monkeypatch, tmp_path):
    """The service accepts the variables of the manifest, with a log and a secret in place of those of the cluster."""
    (tmp_path / "node-secret").write_text("0" * 44)
    given = pod_environment() | {"STRATA_LOG": "kafka://broker:9092/_schemas"}
    given |= {"STRATA_NODE_SECRET": str(tmp_path / "node-secret"), "STRATA_ADVERTISED_URL": "http://10.0.0.5:8081"}
    for name, value in given.items():
        if value is not None:
            monkeypatch.setenv(name, value)
    settings = load_settings()

    assert ("0.0.0.0", 8081, LogFormat.JSON) == (settings.host, settings.port, settings.log_format)
    assert settings.drain_seconds == 10


def test_no_node_is_killed_while_it_drains():
    """Each deployment waits longer than a node drains and ends its requests; the drain outlasts the readiness probe."""
    ready = CONTAINER["readinessProbe"]
    drain = float(pod_environment()["STRATA_DRAIN_SECONDS"])
    assert ready["periodSeconds"] * ready["failureThreshold"] < drain
    assert drain + _SHUTDOWN_SECONDS < POD["spec"]["terminationGracePeriodSeconds"]
    for name, node in COMPOSE["services"].items():
        if name.startswith("strata"):
            waits = float(node["stop_grace_period"].removesuffix("s"))
            assert float(node["environment"]["STRATA_DRAIN_SECONDS"]) + _SHUTDOWN_SECONDS < waits
    assert 1 + _SHUTDOWN_SECONDS < int(re.search(r"^TimeoutStopSec=(\d+)", UNIT, re.MULTILINE)[1])


def test_systemd_does_not_give_up():
    """A node that ends at its start, because its log is away, is started again without end."""
    unit, service = UNIT.split("[Service]")

    assert re.search(r"^StartLimitIntervalSec=0$", unit, re.MULTILINE)
    assert re.search(r"^Restart=on-failure$", service, re.MULTILINE)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path):
    """The analyzer of systemd knows every line of the unit."""
    strata = Path(sys.executable).with_name("strata")
    (tmp_path / "strata.service").write_text(UNIT.replace("/opt/strata/bin/strata", str(strata)))
    command = ["systemd-analyze", "verify", tmp_path / "strata.service"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = [line for line in ended.stderr.splitlines() if "strata" in line]

    assert [] == said
    assert 0 == ended.returncode
