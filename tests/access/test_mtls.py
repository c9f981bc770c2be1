"""Client certificates: whom they name, and which of them name no user."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from strata.registry.core.errors import Unauthorized
from strata.registry.core.rights.principal import ANONYMOUS, Principal
from strata.registry.features.access.authenticator import Authenticator
from strata.registry.features.access.mtls import InvalidCertificate, principal_of
from strata.registry.features.access.options import IdentityOptions
from strata.registry.features.access.principal_mapping import parse_mapping
from strata.registry.features.access.proxy import TrustedProxies, parse_networks

KEY = ec.generate_private_key(ec.SECP256R1())
NOW = datetime.now(UTC)
SERVICE = [("C", "DE"), ("O", "Example"), ("OU", "Services"), ("CN", "etl")]
NAMES = {
    "C": NameOID.COUNTRY_NAME, "O": NameOID.ORGANIZATION_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "CN": NameOID.COMMON_NAME, "MAIL": NameOID.EMAIL_ADDRESS,
}  # fmt: skip


def certificate(subject=SERVICE, uris=(), until=timedelta(days=1), hosts=()):
    """Return a certificate as text."""
    name = x509.Name([x509.NameAttribute(NAMES[kind], value) for kind, value in subject])
    others = [x509.UniformResourceIdentifier(uri) for uri in uris] + [x509.DNSName(host) for host in hosts]
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")]))
        .public_key(KEY.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=2))
        .not_valid_after(NOW + until)
    )
    if others:
        built = built.add_extension(x509.SubjectAlternativeName(others), critical=False)
    return built.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


SPIFFE = "spiffe://example.com/ns/prod/sa/etl"
# name, what the certificate holds, the rules, the user's name
USERS = [
    ("the whole name", {}, "DEFAULT", "CN=etl,OU=Services,O=Example,C=DE"),
    ("a part of it", {}, "RULE:^CN=(.*?),.*$/$1/", "etl"),
    ("host names do not count", {"hosts": ["a.example.com"]}, "RULE:^CN=(.*?),.*$/$1/", "etl"),
    ("a comma in it", {"subject": [("CN", "Doe, Jane")]}, "DEFAULT", "CN=Doe\\, Jane"),
    ("an e-mail address", {"subject": [("MAIL", "a@b.c")]}, "DEFAULT", "1.2.840.113549.1.9.1=a@b.c"),
    ("a SPIFFE ID", {"uris": [SPIFFE]}, "DEFAULT", SPIFFE),
    ("a SPIFFE ID without name", {"subject": [], "uris": [SPIFFE]}, "DEFAULT", SPIFFE),
    ("a part of a SPIFFE ID", {"uris": [SPIFFE]}, r"RULE:^spiffe:\/\/[^\/]+\/ns\/(.*)\/sa\/(.*)$/$1.$2/", "prod.etl"),
    ("another URI", {"uris": ["https://x"]}, "RULE:^CN=(.*?),.*$/$1/", "etl"),
]
WRONG = [
    ("no rule matches", {}, "RULE:^OU=(.*)$/$1/", "no rule matches"),
    ("a rule gives every user", {}, "RULE:.+/*/", "does not give a name"),
    ("a rule gives nothing", {}, "RULE:^CN=.*$//", "does not give a name"),
    ("a name of control characters", {"subject": [("CN", "a\tb")]}, "DEFAULT", "does not give a name"),
    ("two SPIFFE IDs", {"uris": [SPIFFE, SPIFFE + "2"]}, "DEFAULT", "more than one SPIFFE ID"),
    ("neither name nor ID", {"subject": []}, "DEFAULT", "no subject"),
    ("expired", {"until": -timedelta(days=1)}, "DEFAULT", "has expired"),
    ("a rule for names, and a SPIFFE ID", {"uris": [SPIFFE]}, "RULE:^CN=(.*?),.*$/$1/", "no rule matches"),
]


@pytest.mark.parametrize(("holds", "rules", "user"), [row[1:] for row in USERS], ids=[row[0] for row in USERS])
def test_the_user_of_a_certificate(holds, rules, user):
    """The SPIFFE ID or the distinguished name becomes the user's name by the rules."""
    found, ends_at = principal_of(certificate(**holds), parse_mapping(rules))

    assert Principal(user, mechanism="mtls") == found
    assert int((NOW + timedelta(days=1)).timestamp()) == ends_at


@pytest.mark.parametrize(("holds", "rules", "reason"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_certificate_that_names_no_user(holds, rules, reason):
    """A certificate that names no user is an error."""
    with pytest.raises(InvalidCertificate, match=reason):
        principal_of(certificate(**holds), parse_mapping(rules))


@pytest.mark.parametrize("text", ["", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate(text):
    """What cannot be read is an error of this kind too."""
    with pytest.raises(InvalidCertificate, match="cannot be read"):
        principal_of(text, parse_mapping("DEFAULT"))


def scope(*chain, authorization=None, client="192.0.2.1", user=None):
    """Return the scope of a request over a connection with these certificates."""
    headers = [(b"authorization", authorization)] if authorization else []
    headers += [(b"x-user", user)] if user else []
    tls = {"extensions": {"tls": {"client_cert_chain": chain}}} if chain else {"extensions": {"tls": {}}}
    return {"client": (client, 1), "headers": headers} | tls


@pytest.fixture
def authenticator():
    """Yield an authenticator with certificates and a proxy."""
    proxies = TrustedProxies(parse_networks("10.0.0.1"), b"x-user")
    made = Authenticator(IdentityOptions(mapping=parse_mapping("RULE:^CN=(.*?),.*$/$1/"), proxies=proxies))
    yield made
    made.close()


async def test_the_mechanisms_together(authenticator):
    """A proxy's user comes first, then the certificate; without either the client is anonymous."""
    etl = certificate()

    assert ("etl", "mtls") == (await user_of(authenticator, etl, "ca"))
    assert ("alice", "proxy") == (await user_of(authenticator, etl, client="10.0.0.1", user=b"alice"))
    assert ("etl", "mtls") == (await user_of(authenticator, etl, user=b"alice"))
    assert ANONYMOUS == await authenticator.authenticate(scope())
    with pytest.raises(Unauthorized):  # a certificate does not make up for other credentials
        await authenticator.authenticate(scope(etl, authorization=b"Basic YTpi"))
    with pytest.raises(Unauthorized):  # nor is a certificate without a user anonymous
        await authenticator.authenticate(scope(certificate(subject=[("CN", "x")])))


async def user_of(authenticator, *chain, **more):
    """Return the user of a request, and the mechanism."""
    found = await authenticator.authenticate(scope(*chain, **more))
    return found.user, found.mechanism


async def test_a_certificate_is_read_once_until_it_ends(authenticator, monkeypatch):
    """A certificate is remembered, but not beyond its end: connections may last longer."""
    now = [1000.0]
    monkeypatch.setattr(authenticator._certificates, "_now", lambda: now[0])
    short = certificate(until=datetime.now(UTC) - NOW + timedelta(seconds=200))
    first = await authenticator.authenticate(scope(short))
    assert first is await authenticator.authenticate(scope(short))

    now[0] += 201
    assert first is not await authenticator.authenticate(scope(short))


async def test_certificates_count_only_if_that_is_on():
    """Without rules for names, certificates name no user."""
    authenticator = Authenticator(IdentityOptions())

    assert ANONYMOUS == await authenticator.authenticate(scope(certificate()))
    authenticator.close()
