"""Who gets in: by key or by the local token, as far as scopes and tenants go, until they sign out, and never for another site."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.app import create_app
from service.api.page_route import COOKIE, CSRF_HEADER, PageRoute, make_csrf
from service.settings import Settings
from service.store.access.audit import Audit
from service.store.access.keys import Keys
from service.store.database import Database
from service.web.app import add_pages
from service.web.page import MAX_FIELDS, parse_form
from tests.stores import open_new_store
from tests.tables import DATA, read_yaml
from tests.web.site import TOKEN, Visitor, build_request, fill

TABLES = read_yaml(DATA / "web" / "sign_in.yaml")

SCOPES = ("score", "batch", "calibrate", "metrics", "admin")


@pytest.fixture
def guarded(tmp_path: Any, runner: asyncio.Runner) -> Iterator[tuple[Database, Callable[[], Visitor]]]:
    """A site of its own, whose sessions are not remembered from one test to the next."""
    database = open_new_store(tmp_path)
    app = add_pages(create_app(Settings(), database=database), token=TOKEN)
    yield database, lambda: Visitor(app, runner)
    database.close()


Guarded = tuple[Database, Callable[[], Visitor]]


def make_key(database: Database, *scopes: str, tenant: str = "acme") -> tuple[str, str]:
    """The id and text of a new key."""
    key, text = Keys(database).create(name="k", tenant=tenant, scopes=scopes)
    return key.id, text


def enter(visitor: Visitor, key: str) -> Visitor:
    """The visitor, signed in by a key."""
    assert visitor.fill_in("/sign-in", "/sign-in", key=key).status == 303
    return visitor


def list_pages(visitor: Visitor) -> list[PageRoute]:
    return [route for route in visitor.app.routes if isinstance(route, PageRoute)]


def fill_path(template: str) -> str:
    return re.sub(r"\{[^}]*\}", "x", template)


def test_nobody_gets_in_unless_they_sign_in(guarded: Guarded) -> None:
    visitor = guarded[1]()
    for route in list_pages(visitor):
        (method,) = (route.methods or set()) - {"HEAD"}
        answer = visitor.ask(method, fill_path(route.path), content_type="application/x-www-form-urlencoded")
        if not route.public:
            assert (answer.status, answer.body) == (303, b""), route.path
            assert answer.headers["location"].startswith("/sign-in"), route.path


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_opens_the_pages_it_is_for(guarded: Guarded, scope: str) -> None:
    database, visit = guarded
    visitor = enter(visit(), make_key(database, scope)[1])
    csrf = make_csrf(visitor.cookies[COOKIE])
    for route in list_pages(visitor):
        path, opens = fill_path(route.path), scope == "admin" or route.needs in (None, scope)
        if route.methods and "POST" in route.methods:
            answer = None if path in ("/sign-out", "/sign-in") else visitor.send(path, {"csrf": csrf})
        else:
            answer = visitor.open(path)
        if answer is not None and not route.public:
            assert (answer.status == 403) is not opens, (path, answer.status)


def test_a_tenant_sees_what_is_its_own(guarded: Guarded) -> None:
    database, visit = guarded
    ours, theirs = (enter(visit(), make_key(database, "batch", tenant=name)[1]) for name in ("acme", "other"))
    batch = fill(database, [build_request(1)], tenant="acme", name="secret run")
    below = ("", "/traces", "/traces/0", "/summary", "/results", "/errors", "/events")
    for visitor, status in ((ours, 200), (theirs, 404)):
        assert (b"secret run" in visitor.open("/batches").body) is (visitor is ours)
        assert (b"secret run" in visitor.open("/").body) is (visitor is ours)
        for path in below:
            assert visitor.open(f"/batches/{batch}{path}").status == status, path


def test_the_cookie_is_for_this_site_alone_and_out_of_reach_of_scripts(guarded: Guarded) -> None:
    database, visit = guarded
    visitor = visit()
    answer = visitor.fill_in("/sign-in", "/sign-in", key=make_key(database, "score")[1])
    told = answer.headers["set-cookie"].lower()
    assert all(word in told for word in ("httponly", "samesite=strict", "path=/", "max-age=43200"))
    assert "secure" not in told
    again = visitor.fill_in("/sign-in", "/sign-in", key=make_key(database, "score")[1])
    assert again.headers["set-cookie"] != answer.headers["set-cookie"]
    secured = visit().send("/sign-in", {"key": make_key(database, "score")[1]}, x_forwarded_proto="https")
    assert "; secure" in secured.headers["set-cookie"].lower()


@pytest.mark.parametrize("entered", ["", "nonsense", "cg_x", TOKEN, "cg_" + "0" * 12 + "_" + "A" * 43])
def test_a_wrong_key_is_refused_with_the_form(guarded: Guarded, entered: str) -> None:
    database, visit = guarded
    make_key(database, "score")
    answer = visit().fill_in("/sign-in", "/sign-in", key=entered)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers
    assert b'role="alert"' in answer.body
    assert visit().open(f"/sign-in?token={TOKEN}").status == 401


@pytest.mark.parametrize("token", ["nonsense", "", " "])
def test_without_keys_the_printed_token_opens_and_no_other(guarded: Guarded, token: str) -> None:
    visitor = guarded[1]()
    assert "set-cookie" not in visitor.open(f"/sign-in?token={token}").headers
    assert visitor.fill_in("/sign-in", "/sign-in", key=token).status == 401
    assert visitor.fill_in("/sign-in", "/sign-in", key=TOKEN).status == 303
    assert visitor.open("/").status == 200


def test_who_signs_out_is_out_wherever_the_cookie_went(guarded: Guarded) -> None:
    database, visit = guarded
    visitor, thief = enter(visit(), make_key(database, "score")[1]), visit()
    thief.cookies = dict(visitor.cookies)
    assert thief.open("/").status == 200
    assert visitor.fill_in("/", "/sign-out").headers["location"] == "/sign-in"
    assert thief.open("/").status == 303
    assert visitor.open("/").status == 303


@pytest.mark.parametrize("headers", TABLES["foreign"], ids=str)
def test_no_page_of_elsewhere_sends_a_form(guarded: Guarded, headers: dict[str, str]) -> None:
    visitor = guarded[1]()
    visitor.enter()
    fields = {"csrf": make_csrf(visitor.cookies[COOKIE]), "text": "{}", "key": TOKEN}
    for path in ("/score", "/sign-out", "/sign-in"):
        assert visitor.send(path, fields, **headers).status == 403, path
    assert visitor.open("/").status == 200


@pytest.mark.parametrize("csrf", [None, "", "nonsense", make_csrf(""), make_csrf("another")])
def test_a_form_without_its_token_changes_nothing(guarded: Guarded, csrf: str | None) -> None:
    visitor = guarded[1]()
    visitor.enter()
    fields = {} if csrf is None else {"csrf": csrf}
    forms = [one.path for one in list_pages(visitor) if "POST" in (one.methods or ()) and not one.public]
    assert {"/score", "/sign-out"} <= set(forms)
    for path in forms:
        assert visitor.send(fill_path(path), fields).status == 403, path
    assert visitor.open("/").status == 200


@pytest.mark.parametrize(("wanted", "leads"), TABLES["next"])
def test_after_signing_in_one_is_where_one_wanted_to_be(guarded: Guarded, wanted: str, leads: str) -> None:
    answer = guarded[1]().send("/sign-in", {"key": TOKEN, "next": wanted})
    assert (answer.status, answer.headers["location"]) == (303, leads)


def test_a_page_knows_no_key_in_a_header(guarded: Guarded) -> None:
    database, visit = guarded
    _, key = make_key(database, "admin")
    assert visit().ask("GET", "/batches", authorization=f"Bearer {key}").status == 303


FORM = "application/x-www-form-urlencoded"
TOO_MANY = b"&".join(b"a%d=1" % n for n in range(300))


@pytest.mark.parametrize("body", [b"\xff\xfe", TOO_MANY, b"key=%", b"key=%6", b"key=%zz", b"key=%%30", b"key=%61%\n"])
def test_a_form_that_cannot_be_read_is_refused(guarded: Guarded, body: bytes) -> None:
    visitor = guarded[1]()
    assert visitor.ask("POST", "/sign-in", body, content_type=FORM).status == 400
    assert visitor.ask("POST", "/sign-in", b"{}", content_type="application/json").status == 415


def test_a_form_is_as_large_as_what_it_is_for(guarded: Guarded) -> None:
    database, visit = guarded
    visitor = enter(visit(), make_key(database, "admin")[1])
    csrf = make_csrf(visitor.cookies[COOKIE])
    for route in list_pages(visitor):
        if route.methods and "POST" in route.methods and route.path != "/sign-out":
            path = fill_path(route.path)
            answer = visitor.send(path, {"csrf": csrf, "more": "x" * 300_000})
            assert (answer.status == 413) is not route.carries_body, path
    assert {route.path for route in list_pages(visitor) if route.carries_body} == {"/score", "/judges/{name}/install"}


def test_the_page_of_the_api_is_used_with_the_session(guarded: Guarded) -> None:
    database, visit = guarded
    visitor = enter(visit(), make_key(database, "score")[1])
    assert visit().open("/sign-in/session").json["token"] is None
    told = visitor.open("/sign-in/session").json
    assert (told["header"], told["token"]) == (CSRF_HEADER, make_csrf(visitor.cookies[COOKIE]))
    shown = {CSRF_HEADER.replace("-", "_"): told["token"]}
    assert visitor.ask("GET", "/v1/rubrics", **shown).status == 200
    assert visitor.ask("GET", "/v1/batches", **shown).status == 403
    for refused in ({}, {CSRF_HEADER.replace("-", "_"): "0" * 64}):
        assert visitor.ask("GET", "/v1/rubrics", **refused).status == 401
    assert visit().ask("GET", "/v1/rubrics", **shown).status == 401
    assert visitor.ask("GET", "/v1/rubrics", **shown, origin="http://evil.example").status == 403
    visitor.fill_in("/", "/sign-out")
    assert visitor.ask("GET", "/v1/rubrics", **shown).status == 401


def test_who_signs_in_and_out_is_in_the_audit_log(guarded: Guarded) -> None:
    database, visit = guarded
    name, key = make_key(database, "score")
    visitor = enter(visit(), key)
    visitor.fill_in("/", "/sign-out")
    noted = [(one.act, one.who, one.target) for one in Audit(database).page(limit=2).data]
    assert noted == [("session.end", f"key {name}", name), ("session.create", f"key {name}", name)]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(TEXTS, TEXTS), st.sampled_from(["", "=&+ ~%\r\n\t", "abc"]))
def test_fields_come_back_as_they_were(fields: dict[str, str], safe: str) -> None:
    kept = safe.translate(str.maketrans("", "", "=&+%"))
    sent = "&".join(f"{quote_plus(k, safe=kept)}={quote_plus(v, safe=kept)}" for k, v in fields.items())
    assert parse_form(sent.encode()) == dict(parse_qsl(sent, keep_blank_values=True)) == fields


@given(st.text("a=&+%3D6\n é"))
def test_what_is_read_is_what_the_library_reads(text: str) -> None:
    try:
        found = parse_form(text.encode())
    except ValueError:
        return
    assert found == dict(parse_qsl(text, keep_blank_values=True, errors="strict"))


def test_fields_are_counted() -> None:
    assert len(parse_form(b"&".join(b"a%d" % n for n in range(MAX_FIELDS)))) == MAX_FIELDS
    with pytest.raises(ValueError, match="at most"):
        parse_form(b"&" * MAX_FIELDS)
