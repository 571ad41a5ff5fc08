-- Columns with free text have the type ANY. A text that is not valid UTF-8 is stored as a blob, byte for byte.
-- Times are stored as microseconds since 1970, and durations as microseconds, because numbers compare correctly.

CREATE TABLE task (
    seq         INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 6 AND 40 AND id NOT GLOB '*[^a-z0-9]*'),
    attempt     INTEGER NOT NULL DEFAULT 1,
    command     ANY NOT NULL,
    argv        TEXT NOT NULL,
    cwd         ANY NOT NULL,
    project     ANY NOT NULL,
    host        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    description ANY,
    session     ANY,
    parent      TEXT,
    grp         ANY,
    key         ANY,
    mode        TEXT NOT NULL CHECK (mode IN ('background', 'foreground')),
    engine      TEXT NOT NULL,
    timeout     INTEGER,
    max_output  INTEGER NOT NULL,
    notify      TEXT NOT NULL CHECK (notify IN ('all', 'end', 'failure', 'never')),
    retain      INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX task_key ON task (project, key) WHERE key IS NOT NULL;
CREATE INDEX task_project ON task (project, seq);
CREATE INDEX task_session ON task (session, seq) WHERE session IS NOT NULL;
CREATE INDEX task_group ON task (grp, seq) WHERE grp IS NOT NULL;
CREATE INDEX task_parent ON task (parent) WHERE parent IS NOT NULL;

CREATE TABLE attempt (
    task             TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    number           INTEGER NOT NULL CHECK (number >= 1),
    state            TEXT NOT NULL DEFAULT 'queued'
                     CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'lost')),
    condition        TEXT CHECK (condition IN ('stalled', 'input_required', 'orphaned', 'paused')),
    boot             TEXT NOT NULL,
    pid_namespace    INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    ended_at         INTEGER,
    settled_at       INTEGER,
    exit_code        INTEGER,
    signal           INTEGER,
    reason           TEXT,
    detail           TEXT,
    settled_by       TEXT,
    delete_after     INTEGER,
    left_running     TEXT NOT NULL DEFAULT '[]',
    output_bytes     INTEGER,
    output_dropped   INTEGER,
    output_truncated INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task, number),
    -- An ending is whole or absent: state, moment, author and retention come together.
    CHECK ((state IN ('queued', 'running')) = (settled_at IS NULL)),
    CHECK ((state IN ('queued', 'running')) = (delete_after IS NULL)),
    CHECK ((state IN ('queued', 'running')) = (settled_by IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX attempt_unsettled ON attempt (task) WHERE state IN ('queued', 'running');
CREATE INDEX attempt_retention ON attempt (delete_after) WHERE delete_after IS NOT NULL;

CREATE TRIGGER attempt_moves BEFORE UPDATE OF state ON attempt
WHEN (OLD.state, NEW.state) NOT IN (VALUES
    ('queued', 'running'), ('queued', 'failed'), ('queued', 'cancelled'), ('queued', 'timed_out'), ('queued', 'lost'),
    ('running', 'succeeded'), ('running', 'failed'), ('running', 'cancelled'), ('running', 'timed_out'),
    ('running', 'lost'))
BEGIN
    SELECT RAISE(ABORT, 'the table of moves does not allow this');
END;

-- Triggers write the history, so that no statement that changes a state can leave the history out.
CREATE TABLE move (
    task    TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    step    INTEGER NOT NULL,
    before  TEXT,
    after   TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (task, attempt, step)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER attempt_born AFTER INSERT ON attempt BEGIN
    INSERT INTO move (task, attempt, step, before, after, at)
    VALUES (NEW.task, NEW.number, 0, NULL, NEW.state, NEW.created_at);
END;
CREATE TRIGGER attempt_moved AFTER UPDATE OF state ON attempt BEGIN
    INSERT INTO move (task, attempt, step, before, after, at)
    SELECT NEW.task, NEW.number, count(*), OLD.state, NEW.state, coalesce(NEW.settled_at, NEW.started_at)
    FROM move WHERE task = NEW.task AND attempt = NEW.number;
END;

CREATE TABLE evidence (
    task      TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    attempt   INTEGER NOT NULL,
    number    INTEGER NOT NULL,
    seen_at   INTEGER NOT NULL,
    kind      TEXT NOT NULL CHECK (kind IN ('exited', 'signalled', 'not_started', 'vanished')),
    seen_by   TEXT NOT NULL,
    exit_code INTEGER,
    signal    INTEGER,
    started   TEXT NOT NULL CHECK (started IN ('yes', 'no', 'unknown')),
    cause     TEXT,
    detail    TEXT,
    at        INTEGER,
    PRIMARY KEY (task, attempt, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE notice (
    id         TEXT PRIMARY KEY,
    task       TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    attempt    INTEGER NOT NULL,
    kind       TEXT NOT NULL
               CHECK (kind IN ('ended', 'group_ended', 'lost', 'stalled', 'input_required', 'retrying')),
    session    ANY,
    state      TEXT NOT NULL DEFAULT 'pending'
               CHECK (state IN ('pending', 'claimed', 'presented', 'acked', 'dismissed')),
    created_at INTEGER NOT NULL,
    acked_at   INTEGER,
    UNIQUE (task, attempt, kind)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX notice_one_ending ON notice (task, attempt) WHERE kind IN ('ended', 'lost');
CREATE INDEX notice_pending ON notice (session) WHERE state IN ('pending', 'claimed', 'presented');
