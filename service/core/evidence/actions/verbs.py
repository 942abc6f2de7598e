"""The verbs in tool names and texts: which are synonyms, and which change nothing."""

from __future__ import annotations

from functools import lru_cache

from service.core.evidence.reading.words import split_name, split_words, stem_word
from service.core.trace import ToolDef

_CERTAIN_VERBS = """
cancel canceled cancelled void voided
book booked reserve reserved
refund refunded reimburse reimbursed
return returned
exchange exchanged swap swapped
send sent email emailed mail mailed text texted forward forwarded notify notified message messaged
update updated modify modified change changed edit edited adjust adjusted
create created add added open opened file filed submit submitted register registered post posted
delete deleted remove removed erase erased
schedule scheduled reschedule rescheduled
order ordered purchase purchased buy bought
pay paid charge charged
transfer transferred
"""
_FURTHER_VERBS = """
block blocked freeze frozen lock locked
unblock unblocked unfreeze unfrozen unlock unlocked
merge merged
approve approved accept accepted
reject rejected decline declined
assign assigned
close closed resolve resolved
move moved
archive archived
publish published
subscribe subscribed
unsubscribe unsubscribed
start started restart restarted launch launched resume resumed
stop stopped pause paused
enable enabled activate activated
disable disabled deactivate deactivated silence silenced mute muted
renew renewed extend extended
enrol enrolled enroll
invite invited
request requested
log logged save saved record recorded
set
switch switched upgrade upgraded downgrade downgraded
upload uploaded
print printed
release released
withdraw withdrawn withdrew revoke revoked
redirect redirected
raise raised increase increased
lower lowered decrease decreased reduce reduced
sign signed
"""


def _read_table(table: str) -> dict[str, str]:
    return {form: line.split()[0] for line in table.strip().splitlines() for form in line.split()}


CERTAIN = _read_table(_CERTAIN_VERBS)
"""Every form of an unambiguous action verb, mapped to the verb that represents its synonyms."""
DONE = _read_table(_FURTHER_VERBS) | CERTAIN
"""All of CERTAIN, and verbs that may describe the answer itself: `I have moved the total up`."""
TALKING = split_words(
    "checked looked found seen read reviewed listed included converted rounded sorted grouped left kept taken counted "
    "calculated computed compared verified noticed noted used assumed marked highlighted bolded summarised summarized "
    "explained described shown given provided translated searched pulled gathered fetched retrieved located identified "
    "had been tried attempted understood heard gone done mentioned said answered omitted skipped ignored excluded estimated "
    "worked picked chosen based learned received encountered confirmed finished completed focused limited filtered ranked "
    "arranged broken split authenticated accessed prepared drafted "
    "wanted needed liked hoped apologized apologised asked double needed managed outlined attached"
)
"""Past forms that assistants use for what they only read, thought or wrote."""
_PRESENT = split_words("need proceed succeed exceed feed heed speed embed")
"""Present forms that end as past ones do."""
_IRREGULAR = split_words("sent set put made told bought paid written withdrawn sold let begun wrote")


def may_act(verb: str) -> bool:
    """Whether a verb in a past form may describe an action that changed something.

    >>> may_act("restarted"), may_act("told"), may_act("checked"), may_act("need")
    (True, True, False, False)
    """
    return verb not in TALKING | _PRESENT and (verb.endswith("ed") or verb in _IRREGULAR)


_READING_VERBS = split_words(
    "get list search find lookup look read fetch check view show query retrieve calculate compute think describe count "
    "browse inspect analyze explain estimate compare translate convert validate verify preview quote"
)


@lru_cache(maxsize=4096)
def list_actions(name: str) -> frozenset[str]:
    """Return the actions of a tool, judging by its name.

    >>> sorted(list_actions("modify_pending_order")), sorted(list_actions("getUser"))
    (['order', 'update'], [])
    """
    return frozenset([DONE[word] for word in split_name(name) if word in DONE])


@lru_cache(maxsize=4096)
def list_objects(name: str) -> frozenset[str]:
    """Return what a tool acts on, judging by its name: the stems of its words, without the first verb.

    >>> sorted(list_objects("cancel_pending_order"))
    ['order', 'pending']
    """
    words = split_name(name)
    first = next((word for word in words if word in DONE), "")
    return frozenset([stem_word(word) for word in words if word != first])


def only_reads(name: str, tool: ToolDef | None) -> bool:
    """Whether a tool changes nothing: its `readOnlyHint` decides, or else whether its name begins with a reading verb."""
    if tool is not None and tool.annotations:
        hint = tool.annotations.get("readOnlyHint")
        if isinstance(hint, bool):
            return hint
    words = split_name(name)
    return bool(words) and words[0] in _READING_VERBS
