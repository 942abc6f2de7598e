"""Verbs of tools and of texts: which of them say the same, and which change nothing."""

from __future__ import annotations

from functools import lru_cache

from service.core.evidence.reading.words import split_name, split_words, stem_word
from service.core.trace import ToolDef

_TABLE = """
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
DONE = {form: line.split()[0] for line in _TABLE.strip().splitlines() for form in line.split()}
"""Every form of a verb, with the one that stands for all that say the same."""
_READS = split_words(
    "get list search find lookup look read fetch check view show query retrieve calculate compute think describe count "
    "browse inspect analyze explain estimate compare translate convert validate verify preview quote"
)


@lru_cache(maxsize=4096)
def list_actions(name: str) -> frozenset[str]:
    """What a tool does, going by its name.

    >>> sorted(list_actions("modify_pending_order")), sorted(list_actions("getUser"))
    (['order', 'update'], [])
    """
    return frozenset([DONE[word] for word in split_name(name) if word in DONE])


@lru_cache(maxsize=4096)
def list_objects(name: str) -> frozenset[str]:
    """What a tool does it to, going by its name: its words but the first verb.

    >>> sorted(list_objects("cancel_pending_order"))
    ['order', 'pending']
    """
    words = split_name(name)
    first = next((word for word in words if word in DONE), "")
    return frozenset([stem_word(word) for word in words if word != first])


def only_reads(name: str, tool: ToolDef | None) -> bool:
    """Whether a call changes nothing: its annotations say so, or its name begins with a verb that does not."""
    if tool is not None and tool.annotations:
        hint = tool.annotations.get("readOnlyHint")
        if isinstance(hint, bool):
            return hint
    words = split_name(name)
    return bool(words) and words[0] in _READS
