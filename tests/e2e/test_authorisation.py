"""Who may call what, deployed: the ready-made policies, and tokens in place of signatures."""

import base64
import contextlib
import http.server
import json
import threading
import time

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from scripts.emulator import REGION
from scripts.local_stack import deployed
from tests.e2e.conftest import PARAMETERS, WORKFLOWS_DIR, free_port

AUDIENCE = "orders"
EVERYTHING = {"read", "start", "operate", "redrive", "publish"}
CALLS = {
    "read": ("GET", "/workflows", 200),
    "start": ("POST", "/workflows/noted/dispatch", 202),
    "operate": ("POST", "/instances/nobody/cancel", 404),
    "redrive": ("POST", "/bookmark-queue/dead-letters/nobody/replay", 404),
    "publish": ("POST", "/workflows/nobody/retract", 404),
}
BODIES = {"start": {"input": {"order_id": "authorised", "name": "x"}}}


# --- signed requests ---

# What an IAM pattern could take for another route: an address that acts whatever the method, ids like words.
ALIKE = {
    "call back": ("GET", "/callbacks/nonsense", 404),
    "publish of callbacks": ("POST", "/workflows/callbacks/retract", 404),
}
SIGNED = {**CALLS, **ALIKE}


@pytest.fixture(scope="module")
def signed_by(stack):
    """Return a function that calls the API as a user who has one of the policies only."""
    iam = stack.client("iam")
    keys = {}

    def call(policy, name):
        if policy not in keys:
            user = f"only-{policy}"
            iam.create_user(UserName=user)
            if policy:
                iam.attach_user_policy(UserName=user, PolicyArn=stack.outputs[f"Api{policy}Policy"])
            keys[policy] = iam.create_access_key(UserName=user)["AccessKey"]
        method, path, _ = SIGNED[name]
        data = json.dumps(BODIES.get(name, {})).encode() if method == "POST" else b""
        request = AWSRequest(method, stack.api_url + path, {"Content-Type": "application/json"}, data)
        key = keys[policy]
        credentials = Credentials(key["AccessKeyId"], key["SecretAccessKey"])
        SigV4Auth(credentials, "execute-api", REGION).add_auth(request)
        headers = dict(request.headers)
        return stack.request(method, path, data or None, headers, signed=False).status

    return call


@pytest.mark.parametrize(
    ("policy", "permitted"),
    [
        ("", set()),
        ("Read", {"read"}),
        ("Start", {"start", "call back"}),
        ("Operate", {"operate", "redrive"}),
        ("Publish", {"publish", "publish of callbacks"}),
    ],
)
def test_a_ready_made_policy_permits_its_routes_and_no_others(signed_by, policy, permitted):
    found = {name: signed_by(policy, name) for name in SIGNED}
    assert found == {name: each[2] if name in permitted else 403 for name, each in SIGNED.items()}


# --- tokens ---


def _encoded(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """An identity provider: it signs tokens, and serves its key."""

    def __init__(self):
        self.key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def _handler(self):
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                found = issuer.documents().get(self.path)
                self.send_response(200 if found else 404)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, *_):
                """Say nothing."""

        return Handler

    def documents(self):
        numbers = self.key.public_key().public_numbers()
        modulus = _encoded(numbers.n.to_bytes(256, "big"))
        key = {"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig", "n": modulus, "e": "AQAB"}
        return {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": [key]},
        }

    def token(self, scopes=EVERYTHING, **claims):
        now = int(time.time())
        told = {
            "iss": self.url,
            "aud": AUDIENCE,
            "exp": now + 600,
            "tenant": "acme",
            "scope": " ".join(f"aftercommit/{each}" for each in sorted(scopes)),
            **claims,
        }
        signed = f"{_encoded({'alg': 'RS256', 'kid': 'k'})}.{_encoded(told)}"
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encoded(signature)}"


@pytest.fixture(scope="module")
def issuer():
    issuer = Issuer()
    thread = threading.Thread(target=issuer.server.serve_forever, daemon=True)
    thread.start()
    yield issuer
    issuer.server.shutdown()
    issuer.server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def call(stack, issuer):
    """Return a function that calls a stack of its own, which asks for tokens."""
    del stack  # its build is used, and its end awaited
    parameters = {
        **PARAMETERS,
        "JwtIssuer": issuer.url,
        "JwtAudience": AUDIENCE,
        "PublicCallbacks": "true",
        "ExampleLedger": "false",
        "Alarms": "false",
    }
    with contextlib.ExitStack() as running:
        own = running.enter_context(
            deployed(port=free_port(), parameters=parameters, workflows_dir=WORKFLOWS_DIR)
        )
        assert "/callbacks/*" in own.outputs["PublicRoutes"]

        def call(name, token=None, **headers):
            method, path, _ = CALLS.get(name) or name
            bearer = {"Authorization": f"Bearer {token}"} if token else {}
            body = BODIES.get(name, {}) if method == "POST" else None
            return own.request(method, path, body, {**bearer, **headers}, signed=False)

        yield call


def test_a_token_opens_the_routes_of_its_scopes_and_no_others(call, issuer):
    for scope in EVERYTHING:
        token = issuer.token({scope})
        found = {name: call(name, token).status for name in CALLS}
        assert found == {name: CALLS[name][2] if name == scope else 403 for name in CALLS}


@pytest.mark.parametrize(
    "claims",
    [{"exp": 1}, {"aud": "others"}, {"iss": "https://elsewhere"}],
    ids=["over", "audience", "issuer"],
)
def test_a_token_that_is_not_good_opens_nothing(call, issuer, claims):
    assert call("read", issuer.token(**claims)).status == 401
    assert call("read").status == 401
    assert call("read", issuer.token()[:-4] + "AAAA").status == 401


def test_the_tenant_is_that_of_the_token(call, issuer):
    started = call("start", issuer.token())
    instance = ("GET", f"/instances/{started.json()['instance_id']}", 200)
    assert call(instance, issuer.token()).status == 200
    assert call(instance, issuer.token(tenant="other")).status == 404
    refused = call(instance, issuer.token(), **{"X-Tenant-Id": "other"})
    assert (refused.status, refused.json()["error"]["code"]) == (403, "forbidden")


def test_a_public_callback_asks_for_its_own_token_alone(call):
    answer = call(("POST", "/callbacks/nonsense", 404))
    assert (answer.status, answer.json()["error"]["code"]) == (404, "not_found")
