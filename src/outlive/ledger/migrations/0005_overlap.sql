-- A session is told when a task of its writes where another one writes, at the moment when that begins.
-- Only a table that is made anew can allow a new word; what refers to it waits aside meanwhile.
CREATE TABLE delivery_4 AS SELECT * FROM delivery;
CREATE TABLE notice_5 (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    task         TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    attempt      INTEGER NOT NULL,
    kind         TEXT NOT NULL
                 CHECK (kind IN ('ended', 'group_ended', 'lost', 'stalled', 'input_required', 'retrying', 'overlap')),
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
INSERT INTO notice_5 SELECT seq, id, task, attempt, kind, session, origin, project, state, created_at, claimer, tries,
    presented_to, presented_at, last_error, closed_at FROM notice;
DROP TABLE notice;
ALTER TABLE notice_5 RENAME TO notice;
INSERT INTO delivery SELECT * FROM delivery_4;
DROP TABLE delivery_4;

CREATE UNIQUE INDEX notice_one_ending ON notice (task, attempt) WHERE kind IN ('ended', 'lost', 'retrying');
CREATE INDEX notice_owed ON notice (origin, seq) WHERE state IN ('pending', 'claimed', 'presented');
CREATE INDEX notice_owed_in ON notice (project, seq) WHERE state IN ('pending', 'claimed', 'presented');

-- What sessions changed themselves, as their clients tell it: beside what tasks changed, it shows who was in whose way.
CREATE TABLE edit (
    seq     INTEGER PRIMARY KEY,
    origin  INTEGER NOT NULL REFERENCES session (seq),
    project ANY NOT NULL,
    path    ANY NOT NULL,
    at      INTEGER NOT NULL
) STRICT;

CREATE INDEX edit_time ON edit (project, at);
