"""The tables. Times are seconds since 1970 by the database's clock; JSON is stored as readable text."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from service.store.times import Now

METADATA = sa.MetaData()


def _partial_index(name: str, *columns: str, where: str) -> sa.Index:
    return sa.Index(name, *columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _texts(*names: str, key: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text, primary_key=key, nullable=False) for name in names]


def _batch(*, key: bool = True) -> sa.Column[Any]:
    own = sa.ForeignKey("callgrade_batches.id", ondelete="CASCADE")
    return sa.Column("batch", sa.Text, own, primary_key=key, nullable=not key)


def _zeros(kind: type[sa.types.TypeEngine[Any]], *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False, default=0) for name in names]


def _label_item() -> sa.ForeignKeyConstraint:
    own = ["tenant", "item", "criterion"]
    there = [f"callgrade_label_items.{name}" for name in own]
    return sa.ForeignKeyConstraint(own, there, ondelete="CASCADE", onupdate="CASCADE")


def _usage() -> list[sa.Column[Any]]:  # held amounts are reserved by a process, and not yet counted
    counts = ("questions", "held_questions", "cached", "tokens_in", "tokens_out", "unpriced")
    return [*_zeros(sa.BigInteger, *counts), *_zeros(sa.Double, "cost_usd", "uncertain_usd", "held_usd")]


BATCHES = sa.Table(
    "callgrade_batches",
    METADATA,
    *_texts("id", key=True),
    *_texts("tenant", "name"),
    sa.Column("status", sa.Text, nullable=False, default="in_progress"),
    sa.Column("ending", sa.Text),  # cancelled or expired: the final status, once nothing is under way
    sa.Column("reason", sa.Text),  # why it is paused or failed
    sa.Column("resume_at", sa.Double),  # when a paused batch is tried again
    *_zeros(sa.Integer, "total", "open_chunks"),
    *_texts("rejected", "options", "tags"),  # JSON: the lines left out, the defaults of its items, an object of text
    sa.Column("budget_usd", sa.Double),
    sa.Column("webhook", sa.Text),
    sa.Column("webhook_status", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("deadline_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    *_texts("kind"),  # scores or calibration
    sa.Column("max_questions", sa.BigInteger),
    sa.Index("callgrade_batches_of_tenant", "tenant", "kind", "id"),  # an id begins with the time it was made
    sa.Index("callgrade_batches_open", "status", "deadline_at"),
)

CHUNKS = sa.Table(  # each row is an entry of the work queue: see `service.store.jobs.chunks`
    "callgrade_chunks",
    METADATA,
    _batch(),
    sa.Column("first", sa.Integer, primary_key=True),  # the position of its first item; below 0 for what is no chunk
    sa.Column("kind", sa.Text, nullable=False, default="chunk"),  # or finish and notice, which have no items
    *_zeros(sa.Integer, "size"),
    sa.Column("waits", sa.Boolean, nullable=False, default=False),  # whether an item asks judges or runs in a sandbox
    sa.Column("state", sa.Text, nullable=False, default="ready"),  # running, done
    *_zeros(sa.Double, "due_at"),  # not claimed before
    sa.Column("owner", sa.Text),  # the worker that runs it
    *_zeros(sa.Integer, "attempt"),  # counts claims: the holder of an older one may not write
    *_zeros(sa.Integer, "deaths"),  # attempts that ended with the death of their worker
    *_zeros(sa.Integer, "completed", "failed"),
    # Its items, one JSON object per line, deflated. Last, as SQLite reads through all columns before it.
    sa.Column("payload", sa.LargeBinary),
    _partial_index("callgrade_chunks_ready", "batch", "first", where="state = 'ready'"),
    _partial_index("callgrade_chunks_running", "owner", where="state = 'running'"),
    _partial_index("callgrade_chunks_other", "kind", "due_at", where="kind <> 'chunk'"),
    _partial_index("callgrade_chunks_given_up", "batch", where="deaths >= 3"),
)

BATCH_USAGE = sa.Table(  # what each worker process has used for a batch
    "callgrade_batch_usage", METADATA, _batch(), *_texts("owner", key=True), *_usage()
)

PROVIDER_BATCHES = sa.Table(  # what was submitted to a provider's batch endpoint, and what is about to be
    "callgrade_provider_batches",
    METADATA,
    *_texts("label", key=True),  # ours, by which the provider's list is searched
    _batch(key=False),
    sa.Column("first", sa.Integer, nullable=False),  # the position of the first item of its chunk
    sa.Column("size", sa.Integer, nullable=False),  # of its chunk
    *_texts("model", "secret", "state"),  # the nonces of its prompts follow from the secret; new, submitted or ended
    sa.Column("questions", sa.Integer, nullable=False),
    sa.Column("provider_id", sa.Text),
    sa.Column("created_at", sa.Double, nullable=False),
    *_zeros(sa.Integer, "looks"),  # how often it was looked at
    sa.Column("cancelled", sa.Boolean, nullable=False, default=False),  # whether the provider was told to stop
    sa.Index("callgrade_provider_batches_of", "batch", "first"),
    _partial_index("callgrade_provider_batches_open", "state", where="state <> 'ended'"),
)

RESULTS = sa.Table(
    "callgrade_results",
    METADATA,
    _batch(),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("ok", sa.Boolean, nullable=False),
    *_texts("line"),  # of the results or of the errors, as it is returned
)


def _outcome() -> list[sa.Column[Any]]:
    """Build the columns by which traces with an outcome are listed and counted."""
    return [
        *_texts("verdict"),  # error: it could not be scored
        *_texts(
            "stage", "finding", "tool"
        ),  # where it broke first: the stage, the finding's code, the call's tool; or empty
        *_texts("stages"),  # a letter for each stage in its order: the verdict's first, or -
        sa.Column("score", sa.Double),
        *_texts("cluster"),  # its tag `group`; empty: independent of the others
    ]


ITEMS = sa.Table(
    "callgrade_items",
    METADATA,
    _batch(),
    sa.Column("position", sa.Integer, primary_key=True),
    *_texts("custom_id"),
    *_outcome(),
    sa.Index("callgrade_items_by_verdict", "batch", "verdict", "stages", "cluster", "position"),
    sa.Index("callgrade_items_by_break", "batch", "stage", "finding", "tool", "position"),
)

CALIBRATIONS = sa.Table(
    "callgrade_calibrations",
    METADATA,
    _batch(),
    sa.Column("items", sa.Integer, nullable=False),  # number of labelled items
    *_texts("options"),  # JSON: how it is judged and fitted
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
    *_texts("tenant", "key_hash", key=True),  # sha256 of the Idempotency-Key
    *_texts("fingerprint"),  # sha256 of the body and of the options
    *_texts("batch"),  # stays when the batch is deleted, so that the key stays taken
    sa.Column("created_at", sa.Double, nullable=False),
)

USAGE = sa.Table(
    "callgrade_usage",
    METADATA,
    *_texts("tenant", key=True),
    sa.Column("day", sa.Integer, primary_key=True),  # since 1970, in UTC
    *_usage(),
)

SCORES = sa.Table(
    "callgrade_scores",
    METADATA,
    *_texts("id", key=True),
    *_texts("tenant"),
    sa.Column("created_at", sa.Double, nullable=False),
    *_texts("rubric", "tags"),  # id@version; JSON object of text
    *_outcome(),
    sa.Column("request", sa.LargeBinary, nullable=False),  # as it was sent, deflated
    sa.Column("report", sa.LargeBinary, nullable=False),  # likewise
    sa.Index("callgrade_scores_of_tenant", "tenant", "id"),
    sa.Index("callgrade_scores_by_verdict", "tenant", "verdict", "stages", "cluster", "id"),
    sa.Index("callgrade_scores_by_break", "tenant", "stage", "finding", "tool", "id"),
)

LABEL_ITEMS = sa.Table(
    "callgrade_label_items",
    METADATA,
    # item: BATCH/POSITION, the id of a kept score, or the id of an imported item
    *_texts("tenant", "item", "criterion", key=True),
    *_texts("stage"),  # of the criterion; empty: not known
    *_texts("draw"),  # a hash: the order of random draws
    sa.Column("waits", sa.Boolean, nullable=False),  # whether the judge's answer is left to a human
    sa.Column("raw", sa.Double),  # the judge's own value; null: no judge answered
    sa.Column("value", sa.Double),  # the same after its fit
    sa.Column("threshold", sa.Double),  # the least value that passes
    sa.Column("passed", sa.Boolean),  # the report's decision; null: left open
    sa.Column("predictions", sa.Text),  # JSON: a list of judge answers, as calibration takes it
    sa.Column("document", sa.Text),  # JSON: an imported item without its labels
    sa.Column("created_at", sa.Double, nullable=False, default=Now()),
    _batch(key=False),
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
    *_texts("id", key=True),  # later ones sort after earlier ones
    *_texts("tenant", "annotator", "item", "criterion"),
    sa.Column("step", sa.Integer, nullable=False),  # the step that was labelled; -1: the whole trace
    *_texts("label"),  # pass, fail or unsure
    sa.Column("value", sa.Double),  # if the criterion's labels are graded
    sa.Column("failing_step", sa.Integer),
    *_texts("claim", "note", "source"),
    sa.Column("blind", sa.Boolean, nullable=False),  # whether it was given before the judge's answer was shown
    sa.Column("decides", sa.Boolean, nullable=False),  # whether it settles a dispute, rather than being an opinion
    sa.Column("made_at", sa.Double, nullable=False),
    _label_item(),
    # One opinion per person.
    sa.Index("callgrade_labels_once", "tenant", "criterion", "item", "step", "annotator", "decides", unique=True),
    sa.Index("callgrade_labels_of_tenant", "tenant", "id"),
)

LABEL_REVEALS = sa.Table(  # who has seen the judge's answer on an item: it outlives the label given before
    "callgrade_label_reveals", METADATA, *_texts("tenant", "item", "criterion", "annotator", key=True), _label_item()
)

FITS = sa.Table(
    "callgrade_fits",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),  # the highest of a fingerprint is in place
    *_texts("fingerprint"),  # of the judge and the criterion
    *_texts("fit"),  # JSON
    *_texts("calibration"),  # the id of the run that made it; empty: it was uploaded
    *_texts("who"),
    sa.Column("installed_at", sa.Double, nullable=False, default=Now()),
    sa.Index("callgrade_fits_in_place", "fingerprint", "id"),
    sqlite_autoincrement=True,
)

WORKERS = sa.Table(
    "callgrade_workers",
    METADATA,
    *_texts("id", key=True),
    *_zeros(sa.BigInteger, "beats"),  # by which other workers see that it is alive
    *_zeros(sa.Double, "beat_at"),  # for people and probes
)

KEYS = sa.Table(
    "callgrade_keys",
    METADATA,
    *_texts("id", key=True),
    *_texts("tenant", "name"),
    *_texts("hash"),  # sha256 of the secret part, which has 256 random bits
    *_texts("scopes"),  # names separated by spaces
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double),
    sa.Column("revoked_at", sa.Double),
    sa.Column("used_at", sa.Double),  # accurate to the minute
    sa.Column("replaced_by", sa.Text),  # the key that replaced it
)

SESSIONS = sa.Table(
    "callgrade_sessions",
    METADATA,
    *_texts("hash", key=True),  # sha256 of the cookie's value, which has 256 random bits
    *_texts("key_id"),  # the key that was entered; empty: the local token, while there is no key
    sa.Column("created_at", sa.Double, nullable=False, default=Now()),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Index("callgrade_sessions_by_end", "expires_at"),
)

AUDIT = sa.Table(
    "callgrade_audit",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),  # ascending in time
    sa.Column("at", sa.Double, nullable=False, default=Now()),
    # origin: an address, or a machine; tenant: the owner of the target, or empty; target: the id of what was acted on
    *_texts("who", "origin", "act", "tenant", "target"),
    *_texts("detail"),  # JSON object
    sa.Index("callgrade_audit_at", "at"),
    sqlite_autoincrement=True,
)
