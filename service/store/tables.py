"""The tables. Times are seconds since 1970 by the database's clock; JSON is stored as readable text."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

METADATA = sa.MetaData()


def _build_partial_index(name: str, *columns: str, where: str) -> sa.Index:
    return sa.Index(name, *columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _build_usage_columns() -> list[sa.Column[Any]]:
    counts = ("questions", "held_questions", "cached", "tokens_in", "tokens_out", "unpriced")
    sums = ("cost_usd", "uncertain_usd", "held_usd")  # held amounts are reserved by a process, and not yet counted
    return [
        *[sa.Column(name, sa.BigInteger, nullable=False) for name in counts],
        *[sa.Column(name, sa.Double, nullable=False) for name in sums],
    ]


BATCHES = sa.Table(
    "callgrade_batches",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("ending", sa.Text),  # cancelled or expired: the final status, once nothing is under way
    sa.Column("reason", sa.Text),  # why it is paused or failed
    sa.Column("resume_at", sa.Double),  # when a paused batch is tried again
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("open_chunks", sa.Integer, nullable=False),
    sa.Column("rejected", sa.Text, nullable=False),  # JSON: the lines left out by skip_invalid
    sa.Column("options", sa.Text, nullable=False),  # JSON: the defaults of its items
    sa.Column("tags", sa.Text, nullable=False),  # JSON object of text
    sa.Column("budget_usd", sa.Double),
    sa.Column("webhook", sa.Text),
    sa.Column("webhook_status", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("deadline_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Column("kind", sa.Text, nullable=False),  # or calibration
    sa.Column("max_questions", sa.BigInteger),
    sa.Index("callgrade_batches_of_tenant", "tenant", "created_at", "id"),
    sa.Index("callgrade_batches_open", "status", "deadline_at"),
)

CHUNKS = sa.Table(  # each row is an entry of the work queue: see `service.store.jobs.chunks`
    "callgrade_chunks",
    METADATA,
    sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("first", sa.Integer, primary_key=True),  # the position of its first item; below 0 for what is no chunk
    sa.Column("kind", sa.Text, nullable=False),  # chunk; or finish and notice, which have no items
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("waits", sa.Boolean, nullable=False),  # whether an item asks judges or runs in a sandbox
    sa.Column("state", sa.Text, nullable=False),  # ready, running or done
    sa.Column("due_at", sa.Double, nullable=False),  # not claimed before
    sa.Column("owner", sa.Text),  # the worker that runs it
    sa.Column("attempt", sa.Integer, nullable=False),  # counts claims: the holder of an older one may not write
    sa.Column("deaths", sa.Integer, nullable=False),  # attempts that ended with the death of their worker
    sa.Column("completed", sa.Integer, nullable=False),
    sa.Column("failed", sa.Integer, nullable=False),
    # Its items, one JSON object per line, deflated. Last, as SQLite reads through all columns before it.
    sa.Column("payload", sa.LargeBinary),
    _build_partial_index("callgrade_chunks_ready", "batch", "first", where="state = 'ready'"),
    _build_partial_index("callgrade_chunks_running", "owner", where="state = 'running'"),
    _build_partial_index("callgrade_chunks_other", "kind", "due_at", where="kind <> 'chunk'"),
    _build_partial_index("callgrade_chunks_given_up", "batch", where="deaths >= 3"),
)

BATCH_USAGE = sa.Table(  # what each worker process has used for a batch
    "callgrade_batch_usage",
    METADATA,
    sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("owner", sa.Text, primary_key=True),
    *_build_usage_columns(),
)

PROVIDER_BATCHES = sa.Table(  # what was submitted to a provider's batch endpoint, and what is about to be
    "callgrade_provider_batches",
    METADATA,
    sa.Column("label", sa.Text, primary_key=True),  # ours, by which the provider's list is searched
    sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), nullable=False),
    sa.Column("first", sa.Integer, nullable=False),  # the position of the first item whose questions it holds
    sa.Column("size", sa.Integer, nullable=False),  # items
    sa.Column("model", sa.Text, nullable=False),  # empty: these items have no question for a batch
    sa.Column("questions", sa.Integer, nullable=False),
    sa.Column("secret", sa.Text, nullable=False),  # the nonces of its prompts follow from it
    sa.Column("state", sa.Text, nullable=False),  # new, submitted or ended
    sa.Column("provider_id", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("looks", sa.Integer, nullable=False),  # how often it was looked at
    sa.Column("cancelled", sa.Boolean, nullable=False),  # whether the provider was told to stop
    sa.Index("callgrade_provider_batches_of", "batch", "first"),
    _build_partial_index("callgrade_provider_batches_open", "state", where="state <> 'ended'"),
)

RESULTS = sa.Table(
    "callgrade_results",
    METADATA,
    sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("ok", sa.Boolean, nullable=False),
    sa.Column("line", sa.Text, nullable=False),  # the line of the results or of the errors, as it is returned
)

ITEMS = sa.Table(
    "callgrade_items",
    METADATA,
    sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("custom_id", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),  # error: it could not be scored
    sa.Column("stage", sa.Text, nullable=False),  # where it broke first; empty if nowhere, as are the next two
    sa.Column("finding", sa.Text, nullable=False),  # the code of the first finding there
    sa.Column("tool", sa.Text, nullable=False),  # of the call at which it broke
    sa.Column("stages", sa.Text, nullable=False),  # a letter for each stage in its order: the verdict's first, or -
    sa.Column("score", sa.Double),
    sa.Column("cluster", sa.Text, nullable=False),  # its tag `group`; empty: independent of the others
    sa.Index("callgrade_items_by_verdict", "batch", "verdict", "stages", "cluster", "position"),
    sa.Index("callgrade_items_by_break", "batch", "stage", "finding", "tool", "position"),
)

CALIBRATIONS = sa.Table(
    "callgrade_calibrations",
    METADATA,
    sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("items", sa.Integer, nullable=False),  # number of labelled items
    sa.Column("options", sa.Text, nullable=False),  # JSON: how it is judged and fitted
    sa.Column("unanswered", sa.Integer),  # questions that no judge answered; null until it is fitted
    sa.Column("reasons", sa.Text),  # JSON: the first reasons why
    sa.Column("fits", sa.Text),  # JSON: the fits with their file names
    sa.Column("report", sa.Text),  # JSON
    # The labelled items and the recorded predictions, one JSON object per line, deflated. Last, like the payloads of chunks.
    sa.Column("labels", sa.LargeBinary, nullable=False),
    sa.Column("predictions", sa.LargeBinary),
)

SUBMISSIONS = sa.Table(
    "callgrade_submissions",
    METADATA,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("key_hash", sa.Text, primary_key=True),  # sha256 of the Idempotency-Key
    sa.Column("fingerprint", sa.Text, nullable=False),  # sha256 of the body and of the options
    sa.Column("batch", sa.Text, nullable=False),  # stays when the batch is deleted, so that the key stays taken
    sa.Column("created_at", sa.Double, nullable=False),
)

USAGE = sa.Table(
    "callgrade_usage",
    METADATA,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("day", sa.Integer, primary_key=True),  # since 1970, in UTC
    *_build_usage_columns(),
)

SCORES = sa.Table(
    "callgrade_scores",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("rubric", sa.Text, nullable=False),  # id@version
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("score", sa.Double),
    sa.Column("tags", sa.Text, nullable=False),  # JSON object of text
    sa.Column("request", sa.LargeBinary, nullable=False),  # as it was sent, deflated
    sa.Column("report", sa.LargeBinary, nullable=False),  # likewise
    sa.Column("stage", sa.Text, nullable=False),  # from here on as in callgrade_items
    sa.Column("finding", sa.Text, nullable=False),
    sa.Column("tool", sa.Text, nullable=False),
    sa.Column("stages", sa.Text, nullable=False),
    sa.Column("cluster", sa.Text, nullable=False),
    sa.Index("callgrade_scores_of_tenant", "tenant", "id"),
    sa.Index("callgrade_scores_by_verdict", "tenant", "verdict", "stages", "cluster", "id"),
    sa.Index("callgrade_scores_by_break", "tenant", "stage", "finding", "tool", "id"),
)

LABEL_ITEMS = sa.Table(
    "callgrade_label_items",
    METADATA,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column(
        "item", sa.Text, primary_key=True
    ),  # BATCH/POSITION, the id of a kept score, or the id of an imported item
    sa.Column("criterion", sa.Text, primary_key=True),
    sa.Column("stage", sa.Text, nullable=False),  # of the criterion; empty: not known
    sa.Column("draw", sa.Text, nullable=False),  # a hash: the order of random draws
    sa.Column("waits", sa.Boolean, nullable=False),  # whether the judge's answer is left to a human
    sa.Column("raw", sa.Double),  # the judge's own value; null: no judge answered
    sa.Column("value", sa.Double),  # the same after its fit
    sa.Column("threshold", sa.Double),  # the least value that passes
    sa.Column("passed", sa.Boolean),  # the report's decision; null: left open
    sa.Column("predictions", sa.Text),  # JSON: a list of judge answers, as calibration takes it
    sa.Column("document", sa.Text),  # JSON: an imported item without its labels
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("batch", sa.Text, sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE")),
    sa.Column("position", sa.Integer),
    sa.Column("kept", sa.Text, sa.ForeignKey("callgrade_scores.id", ondelete="CASCADE")),
    sa.Index("callgrade_label_items_drawn", "tenant", "criterion", "waits", "draw"),
    sa.Index("callgrade_label_items_by_value", "tenant", "criterion", "waits", "raw"),
    sa.Index("callgrade_label_items_of_batch", "batch", "position"),
    sa.Index("callgrade_label_items_of_score", "kept"),
)

LABELS = sa.Table(
    "callgrade_labels",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),  # later ones sort after earlier ones
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("annotator", sa.Text, nullable=False),
    sa.Column("item", sa.Text, nullable=False),
    sa.Column("criterion", sa.Text, nullable=False),
    sa.Column("step", sa.Integer, nullable=False),  # the step that was labelled; -1: the whole trace
    sa.Column("label", sa.Text, nullable=False),  # pass, fail or unsure
    sa.Column("value", sa.Double),  # if the criterion's menu is graded
    sa.Column("failing_step", sa.Integer),
    sa.Column("claim", sa.Text, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("blind", sa.Boolean, nullable=False),  # whether it was given before the judge's answer was shown
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("decides", sa.Boolean, nullable=False),  # whether it settles a dispute, rather than being an opinion
    sa.Column("made_at", sa.Double, nullable=False),
    sa.ForeignKeyConstraint(
        ["tenant", "item", "criterion"],
        ["callgrade_label_items.tenant", "callgrade_label_items.item", "callgrade_label_items.criterion"],
        ondelete="CASCADE",
    ),
    sa.Index(
        "callgrade_labels_once", "tenant", "criterion", "item", "step", "annotator", "decides", unique=True
    ),  # one opinion per person
    sa.Index("callgrade_labels_of_tenant", "tenant", "id"),
)

LABEL_REVEALS = sa.Table(  # who has seen the judge's answer on an item: it outlives the label given before
    "callgrade_label_reveals",
    METADATA,
    *[sa.Column(name, sa.Text, primary_key=True) for name in ("tenant", "item", "criterion", "annotator")],
    sa.ForeignKeyConstraint(
        ["tenant", "item", "criterion"],
        ["callgrade_label_items.tenant", "callgrade_label_items.item", "callgrade_label_items.criterion"],
        ondelete="CASCADE",
    ),
)

FITS = sa.Table(
    "callgrade_fits",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),  # the highest of a fingerprint is in place
    sa.Column("fingerprint", sa.Text, nullable=False),  # of the judge and the criterion
    sa.Column("fit", sa.Text, nullable=False),  # JSON
    sa.Column("calibration", sa.Text, nullable=False),  # the id of the run that made it; empty: it was uploaded
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("installed_at", sa.Double, nullable=False),
    sa.Index("callgrade_fits_in_place", "fingerprint", "id"),
    sqlite_autoincrement=True,
)

WORKERS = sa.Table(
    "callgrade_workers",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("beats", sa.BigInteger, nullable=False),  # by which other workers see that it is alive
    sa.Column("beat_at", sa.Double, nullable=False),  # for people and probes
)

KEYS = sa.Table(
    "callgrade_keys",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),  # sha256 of the secret part, which has 256 random bits
    sa.Column("scopes", sa.Text, nullable=False),  # names separated by spaces
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double),
    sa.Column("revoked_at", sa.Double),
    sa.Column("used_at", sa.Double),  # accurate to the minute
    sa.Column("replaced_by", sa.Text),  # the key that replaced it
)

SESSIONS = sa.Table(
    "callgrade_sessions",
    METADATA,
    sa.Column("hash", sa.Text, primary_key=True),  # sha256 of the cookie's value, which has 256 random bits
    sa.Column(
        "key_id", sa.Text, nullable=False
    ),  # the key that was entered; empty: the local token, while there is no key
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Index("callgrade_sessions_by_end", "expires_at"),
)

AUDIT = sa.Table(
    "callgrade_audit",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),  # ascending in time
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),  # an address, or a machine
    sa.Column("act", sa.Text, nullable=False),
    sa.Column("tenant", sa.Text, nullable=False),  # the owner of the target; empty: nobody
    sa.Column("target", sa.Text, nullable=False),  # the id of what was acted on
    sa.Column("detail", sa.Text, nullable=False),  # JSON object
    sa.Index("callgrade_audit_at", "at"),
    sqlite_autoincrement=True,
)
