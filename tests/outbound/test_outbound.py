"""Where no connection must ever go, for every kind of URL that others hand us: sandboxes and webhooks, by the same table."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from service.errors import CallgradeError, InputError, SandboxError, WebhookError
from service.outbound.http import Outbound
from service.outbound.sandbox import Sandboxes
from service.outbound.webhooks import Webhooks
from tests.faults.receiver import Scripted, crowded, drip, http, scripted, stall

GOOD = http(b'{"results": [], "final": 1}')


def asks_a_sandbox(url: str, hosts: Iterable[str], **more: Any) -> None:
    sandboxes = Sandboxes(hosts, **{"timeout": 20, **more})
    asyncio.run(sandboxes.ask(sandboxes.admit(url), {"initial": None, "calls": []}))


def delivers_a_webhook(url: str, hosts: Iterable[str], **more: Any) -> None:
    webhooks = Webhooks(hosts, **{"secret": "the-secret", "timeout": 20, **more})
    webhooks.admit(url)
    asyncio.run(webhooks.deliver(url, id="batch_1", body=b"{}"))


@dataclass(frozen=True)
class Front:
    """A way from a URL of somebody else's to a connection of ours."""

    go: Callable[..., None]
    fault: type[CallgradeError]
    place: str


FRONTS = [
    pytest.param(Front(asks_a_sandbox, SandboxError, "/sandbox/url"), id="sandbox"),
    pytest.param(Front(delivers_a_webhook, WebhookError, "/webhook"), id="webhook"),
]


@pytest.fixture(params=FRONTS)
def front(request: pytest.FixtureRequest) -> Front:
    return request.param


@pytest.fixture
def listener() -> Iterator[Scripted]:
    """At every address of this machine, and answering: a connection that is made is counted."""
    with scripted(GOOD, everywhere=True) as server:
        yield server


# How 127.0.0.1 can be written. Each leads to the listener where private addresses are allowed, so each could.
LOOPBACK = [
    "127.0.0.1",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "017700000001",
    "0x7f.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
]


@pytest.mark.parametrize("host", LOOPBACK)
def test_this_machine_is_connected_to_only_where_that_is_allowed(front: Front, host: str) -> None:
    for allow_private in (False, True):
        with scripted(GOOD, everywhere=True) as server:
            url, hosts = f"http://{host}:{server.port}/", [f"{host}:{server.port}"]
            if allow_private:
                front.go(url, hosts, allow_private=True)
                assert server.connections == 1
                continue
            with pytest.raises(front.fault, match="may not be connected to"):
                front.go(url, hosts)
            assert server.untouched()


# Hosts by name, and what they resolve to; None: what the system says. `test_addresses.py` has the addresses one by one.
PRIVATE = [
    ("[2002:7f00:1::]", None),
    ("inside.example", ["10.0.0.7"]),
    ("half.example", ["93.184.216.34", "127.0.0.1"]),
    ("half.example", ["127.0.0.1", "93.184.216.34"]),
]
# Not even where private addresses are allowed.
NEVER = [
    ("169.254.169.254", None),
    ("2852039166", None),  # the same in decimal
    ("[::ffff:169.254.169.254]", None),
    ("0", None),
    ("inside.example", ["fe80::1%1"]),
    ("inside.example", ["not an address"]),
    ("metadata.example", ["fd00:ec2::254"]),
    ("half.example", ["127.0.0.1", "169.254.169.254"]),
]
REFUSED = [(host, addresses, False) for host, addresses in PRIVATE + NEVER]
REFUSED += [(host, addresses, True) for host, addresses in NEVER]


@pytest.mark.parametrize(("host", "addresses", "allow_private"), REFUSED)
def test_no_connection_is_made_to_what_may_not_be_reached(
    front: Front, host: str, addresses: list[str] | None, allow_private: bool, listener: Scripted
) -> None:
    more = {} if addresses is None else {"resolve": lambda *_: addresses}
    url, hosts = f"http://{host}:{listener.port}/", [f"{host}:{listener.port}"]
    with pytest.raises(front.fault, match="may not be connected to"):
        front.go(url, hosts, allow_private=allow_private, **more)
    assert listener.untouched()


def test_a_name_that_resolves_otherwise_the_second_time_leads_nowhere_else(front: Front) -> None:
    looked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        looked.append(host)
        return ["127.0.0.2" if len(looked) == 1 else "127.0.0.1"]

    with scripted(GOOD) as server:  # at 127.0.0.1 only; nobody listens at 127.0.0.2
        url, hosts = f"http://moving.example:{server.port}/", [f"moving.example:{server.port}"]
        with pytest.raises(front.fault, match=r"did not answer: .ConnectionRefusedError"):
            front.go(url, hosts, allow_private=True, resolve=rebinding)
        assert server.untouched()
        assert looked == ["moving.example"]
        front.go(url, hosts, allow_private=True, resolve=rebinding)
        assert server.connections == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(front: Front, status: int) -> None:
    with scripted(GOOD, everywhere=True) as other:
        head = b"HTTP/1.1 %d Moved\r\nLocation: http://127.0.0.1:%d/\r\n" % (status, other.port)
        with scripted(http(b"", head)) as server:
            hosts = [f"127.0.0.1:{server.port}", f"127.0.0.1:{other.port}"]
            with pytest.raises(front.fault, match=f"answered {status}, and redirects are not followed"):
                front.go(f"http://127.0.0.1:{server.port}/", hosts, allow_private=True)
            assert len(server.requests) == 1
        assert other.untouched()


def test_proxies_of_the_environment_are_not_used(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(GOOD) as proxy, scripted(GOOD) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        front.go(f"http://127.0.0.1:{server.port}/", [f"127.0.0.1:{server.port}"], allow_private=True)
        assert len(server.requests) == 1
        assert proxy.untouched()


# Each of these peers waits for ever.

HEAD = b"HTTP/1.1 200 OK\r\n"
SLOW: list[tuple[str, Callable[..., None]]] = [
    ("no head", stall),
    ("a head without end", drip(HEAD + b"X: ", b"x")),
    ("always about to answer", drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n")),
]


def given_up(front: Front, url: str, **more: Any) -> None:
    host = url.partition("//")[2].strip("/")
    with pytest.raises(front.fault, match=r"did not answer: not within 0\.3 seconds"):
        front.go(url, [host], allow_private=True, timeout=0.3, **more)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("behaviour", [pytest.param(slow, id=name) for name, slow in SLOW])
def test_an_answer_that_does_not_come_is_given_up(front: Front, behaviour: Callable[..., None], scheme: str) -> None:
    with scripted(behaviour if scheme == "http" else stall) as server:
        given_up(front, f"{scheme}://127.0.0.1:{server.port}/")


def test_a_connection_or_a_name_that_does_not_come_is_given_up(front: Front) -> None:
    with crowded() as port:
        given_up(front, f"http://127.0.0.1:{port}/")
    released = threading.Event()
    try:
        given_up(front, "http://slow.example:80/", resolve=lambda *_: [str(released.wait(20))])
    finally:
        released.set()


# What is let in. PORT stands for the listener's: every row would reach it, were the URL only believed.

ALLOWED = ("a.example:PORT", "a.example")
KEPT_OUT = [
    ("http://b.example:PORT/", "not among"),
    ("http://sub.a.example:PORT/", "not among"),
    ("http://a.example.evil.example:PORT/", "not among"),
    ("http://evil.example:PORT/a.example", "not among"),
    ("http://a.example:1PORT/", "not a"),
    ("http://2130706433:PORT/", "not among"),
    ("http://0177.0.0.1:PORT/", "not among"),
    ("http://127.1:PORT/", "not among"),
    ("http://[::1]:PORT/", "not among"),
    ("http://[::ffff:127.0.0.1]:PORT/", "not among"),
    ("http://169.254.169.254/latest/meta-data/", "not among"),
    ("http://user:password@a.example:PORT/", "without a user"),
    ("http://a.example:PORT@evil.example:PORT/", "without a user"),
    ("http://a.example@evil.example:PORT/", "without a user"),
    ("http://evil.example@a.example:PORT/", "without a user"),
    ("http://evil.example:PORT\\@a.example:PORT/", "printable ASCII"),
    ("http://evil.example:PORT#@a.example:PORT/", "printable ASCII"),
    ("http://a.example:PORT/\r\nX: y", "printable ASCII"),
    ("http://a.example:PORT\r\n/", "printable ASCII"),
    ("http://a.example:PORT/%0d%0a x", "printable ASCII"),
    ("http://a.example:PORT/\tx", "printable ASCII"),
    ("http://\uff41.example:PORT/", "printable ASCII"),
    ("file:///etc/passwd", "http://host/path"),
    ("file://a.example:PORT/etc/passwd", "http://host/path"),
    ("gopher://a.example:PORT/_x", "http://host/path"),
    ("ftp://a.example:PORT/", "http://host/path"),
    ("//a.example:PORT/", "http://host/path"),
    ("a.example:PORT", "http://host/path"),
    ("http://", "http://host/path"),
    ("", "http://host/path"),
    ("http://a.example:99999/", "not a URL"),
    ("http://[::1/", "not a URL"),
]


@pytest.mark.parametrize(("url", "words"), KEPT_OUT)
def test_other_urls_are_not_let_in(front: Front, url: str, words: str, listener: Scripted) -> None:
    hosts = [host.replace("PORT", str(listener.port)) for host in ALLOWED]
    with pytest.raises(InputError) as caught:
        front.go(url.replace("PORT", str(listener.port)), hosts, allow_private=True, resolve=lambda *_: ["127.0.0.1"])
    (problem,) = caught.value.problems
    assert problem.path == front.place
    assert words in problem.message
    assert listener.untouched()


LET_IN = [
    ("http://a.example", ("a.example", 80, "/", False, "a.example")),
    ("https://a.example/run?x=1", ("a.example", 443, "/run?x=1", True, "a.example")),
    ("https://A.Example.:443/", ("a.example", 443, "/", True, "a.example.:443")),
    ("http://b.example:8443/", ("b.example", 8443, "/", False, "b.example:8443")),
    ("http://[2606:2800::1]:90/", ("2606:2800::1", 90, "/", False, "[2606:2800::1]:90")),
]


@pytest.mark.parametrize(("url", "target"), LET_IN)
def test_allowed_urls_are_let_in(url: str, target: tuple[Any, ...]) -> None:
    hosts = ["a.example", "b.example:8443", "[2606:2800::1]:90"]
    outbound = Outbound(hosts, allow_private=False, timeout=1, max_bytes=1)
    assert tuple(outbound.admit(url, place="/url")) == target
