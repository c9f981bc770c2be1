"""Tokens of a real OpenID Connect provider, and tokens that only pretend to be of it."""

import asyncio
import base64
import hashlib
import hmac
import json
import shutil
import time

import jwt
import pytest

from harness.oidc import CLIENT, SigningKey
from strata.registry.core.errors import TooManyRequests, Unauthorized
from strata.registry.core.rights.principal import Principal
from strata.registry.features.access.authenticator import Authenticator
from strata.registry.features.access.identity_keys import fetch_json
from strata.registry.features.access.options import IdentityOptions, OidcOptions, TokenRules
from strata.registry.node.buckets import Buckets

pytestmark = pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="needs Node.js and npm")

HERE, ELSEWHERE = "https://strata.example.com", "https://other.example.com"
SIGNED = ("RS256", "PS256", "ES256", "EdDSA")
AUDIENCES = {f"{HERE}/{name}": name for name in SIGNED} | {ELSEWHERE: "RS256"}
CLAIMS = {"groups": ["orders-team", "etl-team"], "realm_access": {"roles": ["a"]}, "https://x.y/z": {"my.client": "b"}}
KEYS = {name: SigningKey(name, f"key-{name}") for name in SIGNED}
STRANGER = SigningKey("RS256", "key-RS256")
REFUSED = 'Bearer realm="Strata"'


@pytest.fixture(scope="module")
def provider(identity_providers, tmp_path_factory):
    """Yield a provider with a key for each algorithm."""
    with identity_providers(tmp_path_factory.mktemp("provider"), list(KEYS.values()), AUDIENCES, CLAIMS) as running:
        yield running


@pytest.fixture
def asked():
    """Return the URLs that were asked for keys."""
    return []


@pytest.fixture
def authenticators(provider, asked):
    """Return a function that makes an authenticator for the provider, with some rules changed."""
    made = []

    def make(jwks_url=None, issuer=None, **changed):
        rules = TokenRules(issuer or provider.issuer, tuple(f"{HERE}/{name}" for name in SIGNED), **changed)

        def fetch(url):
            asked.append(url)
            return fetch_json(url, provider.ca_file)

        async def sleep(_seconds):
            """Delay nothing."""

        options = IdentityOptions(oidc=OidcOptions(rules, jwks_url, provider.ca_file))
        undrained = Buckets(lambda: 1_000_000)  # by time, which a machine that pauses would add
        made.append(Authenticator(options, fetch=fetch, sleep=sleep, buckets=undrained))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def authenticator(authenticators):
    """Return an authenticator for the provider."""
    return authenticators()


def scope(token):
    """Return the scope of a request with a token."""
    return {"client": ("192.0.2.1", 1), "headers": [(b"authorization", b"Bearer " + token.encode())]}


def claims(provider, **changed):
    """Return the claims of a good token; a claim of None is left out."""
    now = int(time.time())
    good = {"iss": provider.issuer, "aud": f"{HERE}/RS256", "sub": CLIENT, "iat": now, "exp": now + 600} | CLAIMS
    return {name: value for name, value in (good | changed).items() if value is not None}


def unsigned(provider, algorithm):
    """Return a token without a signature."""
    parts = ({"alg": algorithm, "kid": "key-RS256", "typ": "at+jwt"}, claims(provider))
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def confused(provider, secret):
    """Return a token that is signed with a public key, as if that were a shared secret."""
    head = {"alg": "HS256", "kid": "key-RS256"}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (head, claims(provider))]
    digest = hmac.new(secret, b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, base64.urlsafe_b64encode(digest).rstrip(b"=")]).decode()


def public_pem(key):
    """Return the public part of a key as text."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize("name", SIGNED)
async def test_a_token_of_the_provider(provider, authenticator, name):
    """A token of each algorithm names its client, with the groups of the claim."""
    found = await authenticator.authenticate(scope(provider.token(f"{HERE}/{name}")))

    assert Principal(CLIENT, frozenset({"orders-team", "etl-team"}), "bearer") == found


async def test_a_token_without_the_name_of_its_key(provider, authenticator):
    """The name may be missing if only one key has the algorithm."""
    assert CLIENT == (await authenticator.authenticate(scope(KEYS["RS256"].sign(claims(provider), kid=None)))).user


async def test_keys_are_discovered_and_asked_for_once(provider, authenticator, asked):
    """The URL of the keys comes from the discovery document, and many tokens at once share one look."""
    tokens = [provider.token(f"{HERE}/{name}") for name in SIGNED]
    await asyncio.gather(*(authenticator.authenticate(scope(token)) for token in tokens * 5))

    assert [f"{provider.issuer}/.well-known/openid-configuration", provider.jwks_url] == asked


async def test_keys_at_a_given_url(provider, authenticators, asked):
    """With the URL of the keys, nothing is discovered."""
    await authenticators(jwks_url=provider.jwks_url).authenticate(scope(provider.token(f"{HERE}/ES256")))

    assert [provider.jwks_url] == asked


# what is wrong, the token, and what the client gets to know
NOW = "The token has expired, or is not valid yet"
NOT_HERE = "The token is not for this registry"
NO_USER = "The token does not name a user"
WRONG = [
    ("expired", lambda p: KEYS["RS256"].sign(claims(p, exp=int(time.time()) - 31)), NOW),
    ("not yet valid", lambda p: KEYS["RS256"].sign(claims(p, nbf=int(time.time()) + 120)), NOW),
    ("issued in the future", lambda p: KEYS["RS256"].sign(claims(p, iat=int(time.time()) + 120)), NOW),
    ("without an end", lambda p: KEYS["RS256"].sign(claims(p, exp=None)), NOT_HERE),
    ("an end that is not a number", lambda p: KEYS["RS256"].sign(claims(p, exp="soon")), ""),
    ("an infinite end", lambda p: KEYS["RS256"].sign(claims(p, exp=float("inf"))), ""),
    ("for another audience, by the provider", lambda p: p.token(ELSEWHERE), NOT_HERE),
    ("for no audience", lambda p: KEYS["RS256"].sign(claims(p, aud=None)), NOT_HERE),
    ("for a part of the audience", lambda p: KEYS["RS256"].sign(claims(p, aud=HERE)), NOT_HERE),
    ("an audience that is not text", lambda p: KEYS["RS256"].sign(claims(p, aud={"a": 1})), NOT_HERE),
    ("of another issuer", lambda p: KEYS["RS256"].sign(claims(p, iss="https://evil.example.com")), ""),
    ("of an issuer with a slash more", lambda p: KEYS["RS256"].sign(claims(p, iss=p.issuer + "/")), ""),
    ("without issuer", lambda p: KEYS["RS256"].sign(claims(p, iss=None)), ""),
    ("without subject", lambda p: KEYS["RS256"].sign(claims(p, sub=None)), NO_USER),
    ("an empty subject", lambda p: KEYS["RS256"].sign(claims(p, sub="")), NO_USER),
    ("every user", lambda p: KEYS["RS256"].sign(claims(p, sub="*")), NO_USER),
    ("a subject with a line end", lambda p: KEYS["RS256"].sign(claims(p, sub="a\nUser:admin")), NO_USER),
    ("groups that are not a list", lambda p: KEYS["RS256"].sign(claims(p, groups={"a": 1})), NO_USER),
    ("a group that is not text", lambda p: KEYS["RS256"].sign(claims(p, groups=["a", 7])), NO_USER),
    ("too many groups", lambda p: KEYS["RS256"].sign(claims(p, groups=["a"] * 1001)), NO_USER),
    ("unsigned", lambda p: unsigned(p, "none"), ""),
    ("unsigned, in capitals", lambda p: unsigned(p, "NONE"), ""),
    ("unsigned, under a good name", lambda p: unsigned(p, "RS256"), ""),
    ("a list of algorithms", lambda p: unsigned(p, ["RS256"]), ""),
    ("no algorithm", lambda p: unsigned(p, None), ""),
    ("signed with the public key", lambda p: confused(p, public_pem(KEYS["RS256"])), ""),
    ("signed with a secret", lambda p: jwt.encode(claims(p), "s" * 32, "HS256", {"kid": "key-RS256"}), ""),
    ("signed by a stranger", lambda p: STRANGER.sign(claims(p)), ""),
    ("another algorithm for the key", lambda p: KEYS["PS256"].sign(claims(p), kid="key-RS256"), ""),
    ("the key of another algorithm", lambda p: KEYS["RS256"].sign(claims(p), kid="key-PS256"), ""),
    ("without a key's name, by a stranger", lambda p: STRANGER.sign(claims(p), kid=None), ""),
    ("the key in the token", lambda p: STRANGER.sign(claims(p), jwk=STRANGER.jwk(public=True)), ""),
    ("an address of keys in the token", lambda p: STRANGER.sign(claims(p), jku="https://evil.example.com/jwks"), ""),
    ("of another type", lambda p: KEYS["RS256"].sign(claims(p), typ="logout+jwt"), ""),
    ("of a type that is not text", lambda p: KEYS["RS256"].sign(claims(p), typ=1), ""),
    ("a critical header", lambda p: KEYS["RS256"].sign(claims(p), crit=["x"], x=1), ""),
    ("changed claims", lambda p: _spliced(KEYS["RS256"].sign(claims(p)), claims(p, sub="admin")), ""),
    ("no token", lambda _: "", ""),
    ("two parts", lambda _: "a.b", ""),
    ("four parts", lambda p: KEYS["RS256"].sign(claims(p)) + ".x", ""),
    ("an encrypted token", lambda p: ".".join([KEYS["RS256"].sign(claims(p)), "a", "b"]), ""),
    ("a deep header", lambda _: base64.urlsafe_b64encode(b'{"a":' * 5000).decode().rstrip("=") + ".e30.e30", ""),
    ("too long", lambda p: KEYS["RS256"].sign(claims(p, more="x" * 20_000)), ""),
    ("another scheme's content", lambda _: base64.b64encode(b"alice:secret").decode(), ""),
]


def _spliced(token, other):
    """Return a token with the claims of another one."""
    head, _, signature = token.split(".")
    return ".".join([head, base64.urlsafe_b64encode(json.dumps(other).encode()).decode().rstrip("="), signature])


@pytest.mark.parametrize(("make", "told"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
async def test_a_token_that_is_not_accepted(provider, authenticator, make, told):
    """The answer is 401; the reason is given only for tokens that the issuer has signed."""
    with pytest.raises(Unauthorized) as caught:
        await authenticator.authenticate(scope(make(provider)))

    more = f', error="invalid_token", error_description="{told}"' if told else ""
    assert [("WWW-Authenticate", REFUSED + more)] == caught.value.headers


@pytest.mark.parametrize("kind", ["", "JWT", "jwt", "at+jwt", "application/at+jwt"])
async def test_types_of_access_tokens(provider, authenticator, kind):
    """Providers name the type of access tokens as RFC 9068 does, as that of any token, or not at all."""
    token = KEYS["RS256"].sign(claims(provider), typ=kind)

    assert (await authenticator.authenticate(scope(token))).mechanism == "bearer"


async def test_the_leeway(provider, authenticators):
    """Clocks may differ by the leeway."""
    late = KEYS["RS256"].sign(claims(provider, exp=int(time.time()) - 20, nbf=int(time.time()) + 20))

    assert CLIENT == (await authenticators(leeway_s=60).authenticate(scope(late))).user
    with pytest.raises(Unauthorized):
        await authenticators(leeway_s=0).authenticate(scope(late))


@pytest.mark.parametrize(
    ("path", "groups"),
    [
        ("realm_access.roles", {"a"}),
        ("https://x.y/z.[my.client]", set()),
        ("https://x.y/z", None),
        ("nothing.here", set()),
        ("groups.0", set()),
        ("client", {"etl"}),
    ],
)
async def test_the_claim_of_groups(provider, authenticators, path, groups):
    """Groups come from a claim or a path; a claim may also be one text, but nothing else."""
    token = KEYS["RS256"].sign(claims(provider, client="etl"))
    found = authenticators(groups_claim=path).authenticate(scope(token))
    if groups is None:
        with pytest.raises(Unauthorized):
            await found
    else:
        assert groups == (await found).groups


@pytest.mark.parametrize(
    ("path", "value", "user"),
    [("client_id", {"client_id": "a"}, "a"), ("b.[c.d]", {"b": {"c.d": "e"}}, "e"), ("x.y", {"x.y": "f"}, "f")],
)
async def test_the_claim_of_the_user(provider, authenticators, path, value, user):
    """The user comes from a claim or a path, whose steps may hold dots."""
    token = KEYS["RS256"].sign(claims(provider, **value))

    assert user == (await authenticators(principal_claim=path).authenticate(scope(token))).user


@pytest.mark.parametrize("end", [10**400, 2**64, "4000000000", 4e9], ids=["huge", "64 bits", "a text", "a float"])
async def test_ends_of_any_size(provider, authenticator, end):
    """A token may end when no one will be there to see it, and may say so as a text."""
    assert CLIENT == (await authenticator.authenticate(scope(KEYS["RS256"].sign(claims(provider, exp=end))))).user


async def test_algorithms_can_be_fewer(provider, authenticators):
    """A token of an algorithm that the settings leave out is not accepted."""
    chosen = authenticators(algorithms=("ES256",))

    assert CLIENT == (await chosen.authenticate(scope(provider.token(f"{HERE}/ES256")))).user
    with pytest.raises(Unauthorized):
        await chosen.authenticate(scope(provider.token(f"{HERE}/RS256")))


async def test_a_token_is_remembered_until_it_ends(provider, authenticators, monkeypatch):
    """A remembered token is not accepted after its end."""
    authenticator = authenticators(leeway_s=0)
    now = [1000.0]
    monkeypatch.setattr(authenticator._remembered, "_now", lambda: now[0])
    given = scope(KEYS["RS256"].sign(claims(provider, exp=int(time.time()) + 100)))
    await authenticator.authenticate(given)
    monkeypatch.setattr(authenticator, "_tokens", None)  # a look at the token would fail
    assert CLIENT == (await authenticator.authenticate(given)).user

    now[0] += 101
    with pytest.raises(AttributeError):
        await authenticator.authenticate(given)


async def test_expired_tokens_are_not_guesses(provider, authenticator):
    """A client that goes on with an expired token does not keep out others behind its address."""
    expired = scope(KEYS["RS256"].sign(claims(provider, exp=1)))
    for _ in range(30):
        with pytest.raises(Unauthorized):
            await authenticator.authenticate(expired)

    with pytest.raises(Unauthorized):
        await authenticator.authenticate(scope("a.b.c"))


async def test_invalid_tokens_are_throttled_but_good_ones_pass(provider, authenticator):
    """After ten invalid tokens the answer is 429; a good token from the same address still gets in."""
    codes = []
    for _ in range(12):
        with pytest.raises((Unauthorized, TooManyRequests)) as caught:
            await authenticator.authenticate(scope("a.b.c"))
        codes.append(caught.value.status)

    assert [401] * 10 + [429] * 2 == codes
    assert CLIENT == (await authenticator.authenticate(scope(provider.token(f"{HERE}/RS256")))).user


async def test_keys_rotate(provider, monkeypatch):
    """A token of a new key is accepted after one more look at the keys; one of a withdrawn key no longer."""
    old, new, newest = (SigningKey("RS256", name) for name in ("old", "new", "newest"))
    of_old, of_new, of_newest = (scope(key.sign(claims(provider))) for key in (old, new, newest))
    keys = [old]
    options = OidcOptions(TokenRules(provider.issuer, (f"{HERE}/RS256",)), jwks_url=provider.jwks_url)
    authenticator = Authenticator(
        IdentityOptions(oidc=options), fetch=lambda _: {"keys": [key.jwk(public=True) for key in keys]}
    )
    now = [1000.0]
    monkeypatch.setattr(authenticator._keys, "_now", lambda: now[0])
    assert CLIENT == (await authenticator.authenticate(of_old)).user

    keys[:] = new, old
    with pytest.raises(TooManyRequests) as caught:
        await authenticator.authenticate(of_new)
    assert [("Retry-After", "10")] == caught.value.headers
    now[0] += 10
    assert CLIENT == (await authenticator.authenticate(of_new)).user
    assert CLIENT == (await authenticator.authenticate(of_old)).user

    keys[:] = [newest]
    now[0] += 10
    assert CLIENT == (await authenticator.authenticate(of_newest)).user
    now[0] += 10
    for withdrawn in (of_old, of_new):  # remembered until the keys changed
        with pytest.raises((Unauthorized, TooManyRequests)):
            await authenticator.authenticate(withdrawn)
    authenticator.close()


async def test_a_weak_key_is_not_accepted(tmp_path):
    """A provider whose RSA key has 1024 bits is not trusted."""
    weak = SigningKey("RS256", "weak", bits=1024)
    keys = {"keys": [weak.jwk(public=True)]}
    options = OidcOptions(TokenRules("https://id.example.com", (HERE,)), jwks_url="https://id.example.com/jwks")
    authenticator = Authenticator(IdentityOptions(oidc=options), fetch=lambda _: keys)
    now = int(time.time())
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = weak.sign({"iss": "https://id.example.com", "aud": HERE, "sub": "a", "exp": now + 60})

    with pytest.raises(Unauthorized):
        await authenticator.authenticate(scope(token))
    authenticator.close()
