"""Environment variables that begin with STRATA_: which ones cause a warning, and with what advice."""

import pytest

from strata.registry.settings import Settings
from strata.registry.variables import unknown_variables

# name, the variables, the unknown ones with the nearest setting
VARIABLES = [
    ("none", ["PATH", "STRATALOG", "MY_STRATA_LOGS"], {}),
    ("a letter too many", ["STRATA_LOGS"], {"STRATA_LOGS": "STRATA_LOG?"}),
    ("a letter too few", ["STRATA_ADVERTISE_URL"], {"STRATA_ADVERTISE_URL": "STRATA_ADVERTISED_URL?"}),
    ("a word that is missing", ["STRATA_COMPATIBILITY"], {"STRATA_COMPATIBILITY": "STRATA_COMPATIBILITY_LEVEL?"}),
    ("nothing is near", ["STRATA_XYZZY"], {"STRATA_XYZZY": "strata serve --help"}),
    ("small letters are read", ["strata_log", "strata_logz"], {"strata_logz": "STRATA_LOG?"}),
    ("of other commands", ["STRATA_AUTH", "STRATA_FROM_AUTH", "STRATA_TO_AUTH", "STRATA_A_AUTH", "STRATA_B_AUTH"], {}),
    (
        "of a Kubernetes service called strata",
        [
            "STRATA_SERVICE_HOST", "STRATA_SERVICE_PORT", "STRATA_SERVICE_PORT_HTTP", "STRATA_PORT",
            "STRATA_PORT_8081_TCP", "STRATA_PORT_8081_TCP_PROTO", "STRATA_PORT_8081_TCP_PORT",
            "STRATA_PORT_8081_TCP_ADDR",
        ],
        {},
    ),
    (
        "of a Kubernetes service called strata-log",
        ["STRATA_LOG_SERVICE_HOST", "STRATA_LOG_SERVICE_PORT", "STRATA_LOG_PORT", "STRATA_LOG_PORT_80_UDP_ADDR"],
        {},
    ),
    ("no such service", ["STRATA_LOG_PORT"], {"STRATA_LOG_PORT": "STRATA_LOG_FORMAT?"}),
]  # fmt: skip


@pytest.mark.parametrize(("names", "expected"), [row[1:] for row in VARIABLES], ids=[row[0] for row in VARIABLES])
def test_unknown_variables(names, expected):
    """Each unknown variable gives one sentence with its name and the nearest setting."""
    sentences = unknown_variables(names)

    assert len(expected) == len(sentences)
    for sentence, (name, advice) in zip(sentences, expected.items(), strict=True):
        assert f"variable {name} is not a setting" in sentence
        assert advice in sentence


def test_every_setting_is_known():
    """No setting causes a warning."""
    assert [] == unknown_variables(f"STRATA_{name.upper()}" for name in Settings.model_fields)


def test_no_setting_has_the_name_of_a_kubernetes_variable():
    """No setting has the name of a variable that Kubernetes sets for a service called strata."""
    assert [] == [name for name in Settings.model_fields if name == "port" or name.startswith(("port_", "service_"))]
