"""Which headers are taken for a trace, and what becomes of a stored one: strictly read, or left out."""

import pytest

from aftercommit import traces
from aftercommit.settings import settings
from aftercommit.traces import UNTRACED, Trace, begin, current, header_of, read_header
from tests.unit.test_settings import NEEDED

ROOT, PARENT = "1-6b0d9af3-0123456789abcdef01234567", "53995c3f42cd8ad8"
OTHER = f"1-6b0d9af3-{'f' * 24}:{'e' * 16}"
SAMPLED = f"Root={ROOT};Parent={PARENT};Sampled=1"


@pytest.fixture
def deployed(monkeypatch):
    """Set whether the deployment traces, and the header of this invocation."""

    def deploy(header, *, tracing="true"):
        for name, value in {**NEEDED, "TRACING": tracing, "_X_AMZN_TRACE_ID": header}.items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()

    yield deploy
    settings.cache_clear()


@pytest.mark.parametrize("more", ["", ";Lineage=1:a87bd80c:0", ";Self=1-2-3", ";", ";odd"])
def test_a_header_of_a_recorded_trace_is_read_whatever_else_is_in_it(more):
    assert read_header(SAMPLED + more) == Trace(ROOT, PARENT)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        f"Root={ROOT};Parent={PARENT};Sampled=0",
        f"Root={ROOT};Parent={PARENT}",
        f"Root={ROOT};Parent={PARENT};Sampled=?",
        f"Root={ROOT};Sampled=1",
        f"Parent={PARENT};Sampled=1",
        f"Root={ROOT}0;Parent={PARENT};Sampled=1",
        f"Root={ROOT.upper()};Parent={PARENT};Sampled=1",
        f"Root={ROOT}\n;Parent={PARENT};Sampled=1",
        f"Root={ROOT};Parent={PARENT[:-1]};Sampled=1",
        f"Root={ROOT};Parent={PARENT[:-1]}g;Sampled=1",
        f"Root=2{ROOT[1:]};Parent={PARENT};Sampled=1",
    ],
)
def test_any_other_header_is_no_recorded_trace(text):
    assert read_header(text) is None


def test_a_recorded_invocation_is_kept_in_52_bytes(deployed):
    deployed(SAMPLED + ";Lineage=1:a87bd80c:0")
    assert current() == f"{ROOT}:{PARENT}"
    assert len(current()) == 52


@pytest.mark.parametrize(
    ("header", "tracing"), [(SAMPLED, "false"), (SAMPLED[:-1] + "0", "true"), ("nonsense", "true")]
)
def test_of_one_that_is_not_recorded_nothing_is_kept_and_nothing_sent(deployed, header, tracing):
    deployed(header, tracing=tracing)
    assert current() is None
    assert header_of(None) is None
    assert header_of(UNTRACED) is None


def test_a_stored_trace_counts_more_than_that_of_the_sender(deployed):
    deployed(SAMPLED)
    root, parent = OTHER.split(":")
    assert header_of(OTHER) == f"Root={root};Parent={parent};Sampled=1"
    assert header_of(None) == SAMPLED


def test_a_sender_that_is_not_recorded_hands_a_stored_trace_on(deployed):
    deployed("Root=1-x;Sampled=0")
    assert header_of(f"{ROOT}:{PARENT}") == SAMPLED


def test_one_that_is_not_to_be_recorded_says_so(deployed):
    deployed(SAMPLED)
    assert header_of(UNTRACED) == f"Root={ROOT};Parent={PARENT};Sampled=0"


def test_without_tracing_a_stored_trace_asks_for_none(deployed):
    deployed(SAMPLED, tracing="false")
    assert header_of(OTHER) is None
    assert begin() is None


def test_what_begins_leaves_it_open_whether_it_is_recorded(deployed):
    deployed("")
    first, second = begin(), begin()
    assert first != second
    assert header_of(first) == f"Root={first}"
    assert traces._ROOT.fullmatch(first)


@pytest.mark.parametrize(
    "stored",
    ["x", ROOT[:-1], f"{ROOT}:", f"{ROOT}:{PARENT}\n", f"{ROOT}:{PARENT};Sampled=1", f" {ROOT}", "é" * 3_000],
)
def test_a_stored_trace_that_cannot_be_read_counts_as_none(deployed, stored):
    deployed("")
    assert header_of(stored) is None
    deployed(SAMPLED)
    assert header_of(stored) == SAMPLED


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ("169.254.79.129:2000", ("169.254.79.129", 2000)),
        ("tcp:127.0.0.1:2000 udp:127.0.0.2:2001", ("127.0.0.2", 2001)),
        ("udp:127.0.0.2:2001 tcp:127.0.0.1:2000", ("127.0.0.2", 2001)),
        ("localhost:2000", None),  # a name would have to be looked up
        ("", None),
        ("nonsense", None),
        ("127.0.0.1", None),
        ("tcp:127.0.0.1:2000", None),
    ],
)
def test_the_daemon_is_where_lambda_says(told, address):
    assert traces._daemon(told) == address
