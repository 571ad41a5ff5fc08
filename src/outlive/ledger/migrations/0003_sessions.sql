-- This migration adds sessions: which tasks a session launched, which session it continues, and its notices.
-- `process` identifies the client's process as "pid inode start boot namespace", so that a check can find out whether
-- this process still runs. `begun_by` is the lease of the process that gives the session its hand-off, until the
-- hand-off is given. `rank` is the order in which the sessions of a project last began. `gated` is the time since which
-- the gate has asked the session to wait. This time is a tick: a boot and its monotonic microseconds.
CREATE TABLE session (
    seq         INTEGER PRIMARY KEY,
    id          ANY NOT NULL,
    project     ANY NOT NULL,
    lineage     TEXT NOT NULL,
    client      TEXT,
    source      TEXT CHECK (source IN ('startup', 'resume', 'clear', 'compact', 'fork')),
    created_at  INTEGER NOT NULL,
    rank        INTEGER NOT NULL,
    boundary    INTEGER NOT NULL DEFAULT 0,
    begun_at    INTEGER,
    begun_tick  TEXT,
    begun_by    TEXT,
    ended_at    INTEGER,
    end_reason  TEXT,
    process     TEXT,
    transcript  ANY,
    terminal    ANY,
    gated       TEXT,
    UNIQUE (project, id)
) STRICT;

CREATE INDEX session_id ON session (id, seq);
CREATE INDEX session_lineage ON session (lineage, seq);
CREATE INDEX session_rank ON session (project, rank);

-- This table records which session continues another session. If several sessions continue the same session, the first
-- of them is the heir. But a session that replaced the other session comes before sessions that only branched off. A
-- person may return to a session after it was continued, so the continuations do not form a tree.
CREATE TABLE continuation (
    seq         INTEGER PRIMARY KEY,
    predecessor INTEGER NOT NULL REFERENCES session (seq) ON DELETE CASCADE,
    heir        INTEGER NOT NULL REFERENCES session (seq) ON DELETE CASCADE,
    evidence    TEXT NOT NULL,
    replaces    INTEGER NOT NULL,
    UNIQUE (predecessor, heir)
) STRICT;

CREATE INDEX continuation_heir ON continuation (heir, seq);

-- `origin` is the session that launched a task. `boundary` is the number of boundaries that the session had crossed by
-- then.
ALTER TABLE task ADD COLUMN origin INTEGER REFERENCES session (seq);
ALTER TABLE task ADD COLUMN boundary INTEGER NOT NULL DEFAULT 0;
INSERT INTO session (id, project, lineage, created_at, rank)
    SELECT session, project, 'l' || lower(hex(randomblob(5))), min(created_at), min(seq) FROM task
    WHERE session IS NOT NULL GROUP BY project, session ORDER BY min(seq);
UPDATE task SET origin =
    (SELECT session.seq FROM session WHERE session.project = task.project AND session.id = task.session)
    WHERE session IS NOT NULL;
-- `absent` is the tick since which an attempt without any evidence of its state has been out of sight.
ALTER TABLE attempt ADD COLUMN absent TEXT;
CREATE INDEX task_origin ON task (origin, seq) WHERE origin IS NOT NULL;

-- Notices get a sequence number, which does not depend on a clock, and a record of their delivery.
CREATE TABLE notice_3 (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    task         TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    attempt      INTEGER NOT NULL,
    kind         TEXT NOT NULL
                 CHECK (kind IN ('ended', 'group_ended', 'lost', 'stalled', 'input_required', 'retrying')),
    session      ANY,
    origin       INTEGER REFERENCES session (seq),
    project      ANY,
    state        TEXT NOT NULL DEFAULT 'pending'
                 CHECK (state IN ('pending', 'claimed', 'presented', 'acked', 'dismissed')),
    created_at   INTEGER NOT NULL,
    claimer      TEXT,
    tries        INTEGER NOT NULL DEFAULT 0,
    presented_to INTEGER REFERENCES session (seq),
    presented_at INTEGER,
    last_error   TEXT,
    closed_at    INTEGER,
    UNIQUE (task, attempt, kind),
    CHECK ((state = 'claimed') = (claimer IS NOT NULL))
) STRICT;
INSERT INTO notice_3 (id, task, attempt, kind, session, origin, project, state, created_at, closed_at)
    SELECT notice.id, notice.task, notice.attempt, kind, notice.session, origin, iif(origin > 0, project, NULL),
        CASE WHEN state = 'claimed' THEN 'pending' ELSE state END, notice.created_at, acked_at
    FROM notice JOIN task ON task.id = notice.task ORDER BY notice.created_at, notice.id;
DROP TABLE notice;
ALTER TABLE notice_3 RENAME TO notice;

CREATE UNIQUE INDEX notice_one_ending ON notice (task, attempt) WHERE kind IN ('ended', 'lost', 'retrying');
CREATE INDEX notice_owed ON notice (origin, seq) WHERE state IN ('pending', 'claimed', 'presented');
CREATE INDEX notice_owed_in ON notice (project, seq) WHERE state IN ('pending', 'claimed', 'presented');

-- A sink is a further receiver of notices. `delivery` records the delivery of a notice to a sink.
CREATE TABLE sink (
    name       TEXT PRIMARY KEY,
    kind       TEXT NOT NULL CHECK (kind IN ('run', 'webhook', 'apprise')),
    target     ANY NOT NULL,
    secret     ANY,
    policy     TEXT NOT NULL CHECK (policy IN ('all', 'end', 'failure')),
    project    ANY,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE delivery (
    notice     TEXT NOT NULL REFERENCES notice (id) ON DELETE CASCADE,
    sink       TEXT NOT NULL REFERENCES sink (name) ON DELETE CASCADE,
    state      TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    tries      INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    at         INTEGER,
    PRIMARY KEY (notice, sink)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_pending ON delivery (sink) WHERE state = 'pending';
