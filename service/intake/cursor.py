"""A cursor over the JSON of a source that remembers what was read.

A reader takes members by name and by the type that it expects. What it never took is left to the transcript when the
node closes: an item of a list when the reader goes on to the next, the root when the reader returns. So no reader lists
the members of an API that it does not need, and none can lose a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from pydantic import JsonValue

from service.core.json.members import JsonObject
from service.core.json.pointers import escape_token
from service.core.json.values import name_type
from service.core.trace import UnreadKind
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.texts import parse_text, to_snake
from service.intake.unread_parts.leftovers import About, Rest
from service.intake.unread_parts.suspects import clip, guess_kind, is_reference, list_possible_calls, looks_like_call

Located = tuple[JsonValue, str]
"""A value and its pointer."""
_NO_MEMBERS: JsonObject = {}
_EMPTY: tuple[JsonValue, ...] = (None, "", False, 0, [], {})
_TRUE: tuple[JsonValue, ...] = (True, "true", "True")
_FLAGS = (*_TRUE, False, "false", "False")
"""What a flag may be; 1 and 0 are equal to true and false."""
_PRINTED = re.compile(r"\s*(?:[A-Za-z_][\w.]*\(\s*\w+=|\{\s*'\w+':).*[)}]\s*", re.DOTALL)
"""A text that spells an object as Python prints it: `ToolUseBlock(id='c', ...)`, `{'type': ...}`."""


def _spells_object(text: str) -> bool:
    """Whether a text stands in place of an object: it is one as Python prints it, or JSON of a call."""
    return _PRINTED.fullmatch(text) is not None or any(list_possible_calls(parse_text(text), ""))


def pick_sample(chosen: object, count: int, name: str) -> int:
    """Return the index of the reply to read in the member `name`.

    Raises InputError: several replies and none chosen, or an index out of range.
    """
    if chosen is None and count > 1:
        raise InputError.at(f"/{name}", f'{count} replies make {count} traces; choose one with "sample", from 0')
    if chosen is not None and not (isinstance(chosen, int) and 0 <= chosen < count):
        raise InputError.at("/sample", f"expected a number from 0 to {count - 1}")
    return chosen or 0


class Cursor:
    """A value of the source at its pointer, usually an object. Each getter marks what it returns as read."""

    __slots__ = ("_about", "_left", "_of", "_opened", "_silent", "_taken", "members", "out", "path", "raw")

    def __init__(self, raw: JsonValue | JsonObject, out: Transcript, path: str = "", of: str = "the trace") -> None:
        """Start at a value; the default is the root. `of`: what it is, for reasons, such as "a message"."""
        self.raw = raw
        self.members: JsonObject = raw if isinstance(raw, dict) else _NO_MEMBERS
        """Its members as they are; empty unless it is an object. To look at one does not take it."""
        self.path = path
        self.out = out
        """Where its reader reports what happened."""
        self._of = of
        self._about: About = "record"
        self._silent = self._left = False
        self._taken: set[str] = set()
        self._opened: dict[str, Cursor] | None = None

    def __contains__(self, name: str) -> bool:
        """Whether a member is there, even if it is null."""
        return name in self.members

    def __bool__(self) -> bool:
        """Whether there is something here."""
        return self.raw not in _EMPTY

    def peek(self, name: str) -> JsonValue:
        """Return a member without taking it; None if there is none."""
        return self.members.get(name)

    def take(self, *names: str) -> JsonValue:
        """Return the first of these members that is there, whatever it is, and all that is in it as read; else None."""
        for name in names:
            if name in self.members:
                self._taken.add(name)
                return self.members[name]
        return None

    def take_all(self, *names: str) -> None:
        """Mark these members as read."""
        self._taken.update(names)

    def text(self, *names: str) -> str:
        """Return the first of these members that is a text with something in it; "" if none is."""
        for name in names:
            value = self.members.get(name)
            if isinstance(value, str):
                self._taken.add(name)
                if value:
                    return value
        return ""

    def flag(self, *names: str) -> bool:
        """Whether one of these members is true, which may be spelt as a text or as 1. Any other value is not taken."""
        found = False
        for name in names:
            value = self.members.get(name)
            if name in self.members and value in _FLAGS:
                self._taken.add(name)
                found = found or value in _TRUE
        return found

    def child(self, *names: str, of: str = "") -> Cursor:
        """Return the first of these members that is an object; an empty node if none is."""
        for name in names:
            if isinstance(value := self.members.get(name), dict):
                return self._open(name, value, of)
            self._leave_plain(name, of)
        return Cursor(None, self.out)

    def member(self, name: str) -> Cursor:
        """Return a member as a node, whatever it is and whatever its name."""
        node = self._open(name, self.members.get(name), "")
        node.path = f"{self.path}/{escape_token(name)}"
        return node

    def locate(self, *paths: str, keep: bool = False) -> Located:
        """Take the value at the first path where there is one, decoded where it is JSON text, with its pointer; else null.

        A path is members with "/" between them. `keep`: it is not taken.
        """
        found: Located | None = None
        for path in paths:
            *way, name = path.split("/")
            holder = self
            for one in way:
                holder = holder.child(one) if one in holder else Cursor(None, self.out)
            if name in holder and (found is None or found[0] is None):
                value = holder.peek(name) if keep else parse_text(holder.take(name))
                found = (value, f"{holder.path}/{escape_token(name)}")
        return found or (None, self.path)

    def list_untaken(self) -> list[str]:
        """Return the names of the members that were not taken."""
        return [name for name in self.members if name not in self._taken]

    def items(self, *names: str, of: str = "") -> Iterator[Cursor]:
        """Iterate over the items of the first of these members that is a list, or of the node itself if none is named.

        An item closes when the loop goes on; those that a loop never reached are left. Raises InputError: a member of
        the record that is no list.
        """
        listed, name = None if names else self.raw, ""
        for name in names:
            listed = self.members.get(name)
            if isinstance(listed, list):
                break
            if listed is not None and not self.path:
                raise InputError.at(f"/{name}", f"expected an array, not {name_type(listed)}")
            self._leave_plain(name, of)
        if isinstance(listed, list):
            self._taken.update((name,) if names else ())
            yield from self._open_each(
                listed, f"{self.path}/{name}" if names else self.path, of or f"an item of {name!r}"
            )

    def _open_each(self, listed: list[JsonValue], path: str, of: str) -> Iterator[Cursor]:
        place = -1
        try:
            for place, value in enumerate(listed):
                node = Cursor(value, self.out, f"{path}/{place}", of)
                if isinstance(value, str) and _spells_object(value):
                    self.out.miss_reply(node.path, f"{of} that is spelt as a text")
                    continue
                yield node
                if node._opened or not node._taken.issuperset(node.members):  # most items have nothing to close
                    node.close()
                elif not (node._left or isinstance(value, (dict, str, list))):
                    node.leave(f"{of} that is {name_type(value)}", holds=guess_kind(to_snake(of)))
        finally:
            for later in range(place + 1, len(listed)):
                Cursor(listed[later], self.out, f"{path}/{later}", of).leave()

    def _leave_plain(self, name: str, of: str) -> None:
        """Leave a member where a call or a result was looked for, by `of`, and which is a mere text, number or true.

        JSON text is looked into when the node closes.
        """
        value = self.members.get(name)
        if of and isinstance(value, (str, int, float)) and value and parse_text(value) is value:
            self.member(name).leave(f"{of} that is {name_type(value)}", holds=guess_kind(to_snake(of)))

    def list_nodes(self, path: str) -> list[Cursor]:
        """Return the items of the list at a path, open until the node closes; one that is no object may have held anything."""
        name, _, rest = path.partition("/")
        if rest:
            return self.child(name).list_nodes(rest)
        nodes: list[Cursor] = []
        listed, seen = self.members.get(name), name in self._taken
        for place, value in enumerate(listed if isinstance(listed, list) else ()):
            node = self._open(f"{name}/{place}", parse_text(value), f"an item of {name!r}")
            if isinstance(node.raw, dict):
                nodes.append(node)
            elif not seen:
                self.out.miss_reply(node.path, f"an item of {name!r} that is {name_type(value)}")
        self._taken.update((name,) if isinstance(listed, list) else ())
        return nodes

    def pick(self, name: str, sample: object) -> Cursor:
        """Return the item of a list that `sample` chooses, the only one if it is None; the others are other traces.

        An empty node if there is no item. Raises InputError: several items and none chosen, or none of that number.
        """
        listed = self.members.get(name)
        if not isinstance(listed, list) or not listed:
            return Cursor(None, self.out)
        chosen = pick_sample(sample, len(listed), name)
        self._taken.add(name)
        return self._open(f"{name}/{chosen}", listed[chosen], f"an item of {name!r}")

    def parts(self, *names: str) -> Iterator[Cursor]:
        """Iterate over the parts of a message's content; a bare text is one part of the type `text`."""
        name = next((name for name in names if isinstance(self.members.get(name), (str, list, dict))), "")
        value = self.members.get(name)
        if isinstance(value, str):
            self._taken.add(name)
            if value:
                yield Cursor(value, self.out, f"{self.path}/{name}", "a part")
        elif isinstance(value, list):
            yield from self.items(name, of="a part")
        elif isinstance(value, dict):
            yield self._open(name, value, "a part")

    def tells_of(self, about: About, *, silent: bool) -> None:
        """Note what this is; `silent`: nothing was found in it, so that an odd member may hold what was said or returned."""
        self._about, self._silent = about, silent

    def drop(self) -> None:
        """Mark all of it as read."""
        self._taken.update(self.members)

    def leave(
        self,
        what: str = "",
        *,
        holds: UnreadKind = "other",
        shown: bool = False,
        keep: bool = False,
        by_id: bool = True,
    ) -> None:
        """Leave the whole node to be judged: what is found in it counts, or `holds` if nothing is.

        What is null or a number may have been a call or a text.

        `shown`: a user shows it, and it leaves nothing open. `keep`: its members may still be read. `by_id`: only a
        call with the id of a call that was read may be its repetition.
        """
        self._left = True
        if not keep:
            self.drop()
        if self.raw is None and not self.path:  # it is not there
            return
        if holds in ("text", "other") and not (shown or isinstance(self.raw, (dict, str, list))):
            self.out.miss_reply(self.path, what or self._name())
        elif holds == "call":
            self.out.note_unread("call", self.path, what or self._name())
        else:
            value = cast("JsonValue", self.raw)
            self.out.leave(Rest(value, self.path, what or self._name(), holds=holds, shown=shown, by_id=by_id))

    def close(self) -> None:
        """Leave each member that was not taken, here and in what was opened. Closing twice changes nothing."""
        for node in self._opened.values() if self._opened else ():
            node.close()
        if self._taken.issuperset(self.members):
            return
        rest = {name: value for name, value in self.members.items() if name not in self._taken and value not in _EMPTY}
        self._taken.update(rest)
        if len(rest) > 1 and self.path and looks_like_call(rest):  # what is left of it could be a call as a whole
            self.out.leave(Rest(rest, self.path, self._name(), holds="other"))
            return
        for name, value in rest.items():
            what, place = f"the member {clip(name)!r} of {self._name()}", f"{self.path}/{escape_token(name)}"
            if not self.path and is_reference(name):
                self.out.note_unread("other", place, what)
            else:
                self.out.leave(Rest(value, place, what, name, self._about, by_id=self.path != "", silent=self._silent))

    def _name(self) -> str:
        return self._of or f"the member {clip(self.path.rpartition('/')[2])!r}"

    def _open(self, name: str, value: JsonValue, of: str) -> Cursor:
        if self._opened is None:
            self._opened = {}
        node = self._opened.get(name)
        if node is None:
            node = self._opened[name] = Cursor(value, self.out, f"{self.path}/{name}", of)
            self._taken.add(name)
        return node
