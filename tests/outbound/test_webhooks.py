"""Webhooks: what a receiver gets and can check, what is worth another try, and what is refused before anything is sent."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InputError, SettingsError, WebhookError
from service.outbound.webhooks import Webhooks, read_secret, signature, verify
from service.settings import Settings
from service.wiring import build_webhooks
from tests.faults.receiver import Behaviour, Scripted, drip, http, scripted

NOW = 1_700_000_000.9
RAW = b"\x00\x01 thirty-two bytes of anything \xff"
ENCODED = f"whsec_{base64.b64encode(RAW).decode()}"
BODY = json.dumps({"type": "batch.completed", "data": {"id": "batch_1", "name": "Zürich"}}).encode()
OK = http(b"")


def local(port: int, **more: Any) -> Webhooks:
    more = {"secret": ENCODED, "allow_private": True, "timeout": 20, "now": lambda: NOW} | more
    return Webhooks([f"127.0.0.1:{port}"], **more)


def delivered(server: Scripted, *, body: bytes = BODY, **more: Any) -> tuple[dict[str, str], bytes]:
    """The headers and the body of the request that came of one delivery."""
    url = f"http://127.0.0.1:{server.port}/hooks?of=ours"
    asyncio.run(local(server.port, **more).deliver(url, id="batch_1", body=body))
    head, _, sent = server.requests[-1].partition(b"\r\n\r\n")
    lines = [line.partition(": ") for line in head.decode().split("\r\n")[1:]]
    return {name: value for name, _, value in lines}, sent


# What a receiver gets.


def test_it_is_a_post_with_the_body_as_it_was() -> None:
    with scripted(OK) as server:
        headers, body = delivered(server)
    assert server.requests[0].startswith(b"POST /hooks?of=ours HTTP/1.1\r\n")
    assert body == BODY
    assert headers["Content-Type"] == "application/json"
    assert headers["Host"] == f"127.0.0.1:{server.port}"
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("batch_1", "1700000000")


@pytest.mark.parametrize(
    ("secret", "key"), [(ENCODED, RAW), ("plain text", b"plain text"), ("zürich", "zürich".encode())]
)
def test_the_signature_is_the_one_of_the_convention(secret: str, key: bytes) -> None:
    with scripted(OK) as server:
        headers, body = delivered(server, secret=secret)
    digest = hmac.new(key, b"batch_1.1700000000." + BODY, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    verify(secret, headers, body, now=lambda: NOW)


def test_an_example_of_the_convention() -> None:
    """The one with which its own libraries are tested."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    verify(secret, headers, b'{"test": 2432232314}', now=lambda: 1614265330)


def test_each_try_has_its_own_time_and_the_same_id() -> None:
    times = iter([1_000.0, 2_000.0])
    with scripted(OK) as server:
        tries = [delivered(server, now=lambda: next(times))[0] for _ in range(2)]
    assert [one["webhook-id"] for one in tries] == ["batch_1", "batch_1"]
    assert [one["webhook-timestamp"] for one in tries] == ["1000", "2000"]


# What a receiver believes.

SIGNED = {
    "Webhook-Id": "batch_1",
    "WEBHOOK-TIMESTAMP": "1700000000",
    "webhook-signature": signature(ENCODED, "batch_1", "1700000000", BODY),
}
OTHER = signature("other", "batch_1", "1700000000", BODY)
DUE, UNFIT, ASKED = "301 s away", "does not fit", "expected the headers"
DELIVERIES: list[tuple[str, Mapping[str, str], dict[str, Any], str]] = [
    ("as it was sent", {}, {}, ""),
    ("at the end of its time", {}, {"now": 1_700_000_300}, ""),
    ("by a clock that is behind", {}, {"now": 1_699_999_700}, ""),
    ("with one more signature", {"webhook-signature": f"{OTHER} {SIGNED['webhook-signature']}"}, {}, ""),
    ("with one of another version", {"webhook-signature": f"v1a,abc {SIGNED['webhook-signature']}"}, {}, ""),
    ("another body", {}, {"body": BODY + b" "}, UNFIT),
    ("another secret", {}, {"secret": ENCODED[:-4] + "AAAA"}, UNFIT),
    ("another id", {"Webhook-Id": "batch_2"}, {}, UNFIT),
    ("another time", {"WEBHOOK-TIMESTAMP": "1700000001"}, {}, UNFIT),
    ("the signature of another secret", {"webhook-signature": OTHER}, {}, UNFIT),
    ("another version", {"webhook-signature": "v2" + SIGNED["webhook-signature"][2:]}, {}, UNFIT),
    ("half a signature", {"webhook-signature": SIGNED["webhook-signature"][:-1]}, {}, UNFIT),
    ("no text", {"webhook-signature": "v1,\xe9"}, {}, UNFIT),
    ("too old", {}, {"now": 1_700_000_301}, DUE),
    ("from the future", {}, {"now": 1_699_999_699}, DUE),
    ("no signature", {"webhook-signature": ""}, {}, ASKED),
    ("no id", {"Webhook-Id": ""}, {}, ASKED),
    ("no time", {"WEBHOOK-TIMESTAMP": ""}, {}, ASKED),
    ("a time in words", {"WEBHOOK-TIMESTAMP": "now"}, {}, ASKED),
    ("a time without end", {"WEBHOOK-TIMESTAMP": "9" * 5_000}, {}, ASKED),
    ("digits of another script", {"WEBHOOK-TIMESTAMP": "\u0661\u0667" + "\u0660" * 8}, {}, ASKED),
]


@pytest.mark.parametrize(("change", "given", "words"), [pytest.param(*row[1:], id=row[0]) for row in DELIVERIES])
def test_what_a_receiver_believes(change: Mapping[str, str], given: dict[str, Any], words: str) -> None:
    said = {"body": BODY, "secret": ENCODED, "now": NOW} | given
    with pytest.raises(ValueError, match=words) if words else nullcontext():
        verify(said["secret"], SIGNED | dict(change), said["body"], now=lambda: said["now"])


@given(st.binary(), st.integers(0, 2**40), st.text(min_size=1).filter(lambda text: not text.startswith("whsec_")))
def test_what_is_signed_is_believed_and_one_bit_more_is_not(body: bytes, at: int, secret: str) -> None:
    try:
        signed = signature(secret, "b", str(at), body)
    except ValueError:
        return  # a lone surrogate is no text
    headers = {"webhook-id": "b", "webhook-timestamp": str(at), "webhook-signature": signed}
    verify(secret, headers, body, now=lambda: at)
    with pytest.raises(ValueError, match="does not fit"):
        verify(secret, headers, body + b"\0", now=lambda: at)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!", "whsec_c2V", "whsec_zürich", "whsec_c2Vj cmV0"])
def test_what_is_no_secret(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_ and base64") as caught:
        read_secret(secret)
    assert secret[6:] == "" or secret not in str(caught.value)


# What is worth another try.

AGAIN = {None: [200, 204, 299], True: [429, 500, 503, 599], False: [300, 302, 308, 400, 401, 404, 408, 410]}
STATUSES = [(status, again) for again, those in AGAIN.items() for status in those]


@pytest.mark.parametrize(("status", "again"), STATUSES)
def test_the_status_says_whether_it_was_delivered(status: int, again: bool | None) -> None:
    with scripted(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status) as server:
        if again is None:
            delivered(server)
        else:
            with pytest.raises(WebhookError, match=f"the receiver answered {status}") as caught:
                delivered(server)
            assert caught.value.retryable is again
    assert len(server.requests) == 1


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "behaviour", [drip(HEAD + b"\r\n", b" "), drip(HEAD + b"Content-Length: 9999999\r\n\r\n", b" ")]
)
def test_the_body_of_an_answer_is_not_waited_for(behaviour: Behaviour) -> None:
    with scripted(behaviour) as server:
        delivered(server)


def test_nobody_there_is_worth_another_try_and_an_address_that_is_refused_is_not() -> None:
    with scripted(OK) as server:
        port = server.port
        for allow_private, again in ((True, True), (False, False)):
            url = f"http://there.example:{port}/"
            webhooks = Webhooks(
                [f"there.example:{port}"], secret="s", allow_private=allow_private, resolve=lambda *_: ["127.0.0.2"]
            )
            with pytest.raises(WebhookError) as caught:
                asyncio.run(webhooks.deliver(url, id="b", body=b"{}"))
            assert caught.value.retryable is again
        assert server.untouched()


# What is refused before anything is sent.

OFF = [
    ([], "s", "no webhook host is set"),
    (["a.example"], "", "no webhook secret is set"),
    (["b.example"], "s", "a.example is not among"),
]


@pytest.mark.parametrize(("hosts", "secret", "words"), OFF)
def test_it_is_refused_when_it_is_named_and_when_it_is_due(hosts: list[str], secret: str, words: str) -> None:
    looked: list[str] = []
    webhooks = Webhooks(hosts, secret=secret, resolve=lambda host, _: looked.append(host) or [])
    with pytest.raises(InputError, match=words) as refused:
        webhooks.admit("https://a.example/hook")
    assert [problem.path for problem in refused.value.problems] == ["/webhook"]
    with pytest.raises(WebhookError, match=words) as caught:
        asyncio.run(webhooks.deliver("https://a.example/hook", id="b", body=b"{}"))
    assert not caught.value.retryable
    assert looked == []


@pytest.mark.parametrize("name", ["", "a.b", "a\r\nX: y", "a b", "é", "x" * 256])
def test_an_id_that_would_blur_what_is_signed_is_a_mistake(name: str) -> None:
    with scripted(OK) as server:
        with pytest.raises(ValueError, match="expected an id"):
            asyncio.run(local(server.port).deliver(f"http://127.0.0.1:{server.port}/", id=name, body=b"{}"))
        assert server.untouched()


# Settings.


def test_settings_make_webhooks_or_none() -> None:
    assert build_webhooks(Settings()) is None
    assert build_webhooks(Settings(webhook_secret="s")) is None
    with scripted(OK) as server:
        environ = {
            "CALLGRADE_WEBHOOK_HOSTS": f"127.0.0.1:{server.port}",
            "CALLGRADE_WEBHOOK_SECRET": ENCODED,
            "CALLGRADE_WEBHOOK_ALLOW_PRIVATE": "true",
        }
        webhooks = build_webhooks(Settings.from_env(environ))
        assert webhooks is not None
        asyncio.run(webhooks.deliver(f"http://127.0.0.1:{server.port}/", id="b", body=b"{}"))
        private = Settings.from_env(environ | {"CALLGRADE_WEBHOOK_ALLOW_PRIVATE": "false"})
        cautious = build_webhooks(private)
        assert cautious is not None
        with pytest.raises(WebhookError, match="may not be connected to"):
            asyncio.run(cautious.deliver(f"http://127.0.0.1:{server.port}/", id="b", body=b"{}"))
    assert len(server.requests) == 1


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_not-base64"])
def test_hosts_without_a_secret_that_works_are_a_mistake(secret: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_webhooks(Settings(webhook_hosts=("a.example",), webhook_secret=secret))
    (problem,) = caught.value.problems
    assert problem.path == "CALLGRADE_WEBHOOK_SECRET"
    assert "not-base64" not in problem.message
