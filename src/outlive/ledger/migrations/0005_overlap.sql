-- A session gets a notice of the kind `overlap` as soon as its task writes where another task writes.
-- A CHECK cannot be changed in place, so the table is created anew to allow the new kind. The rows that refer to the
-- table are kept in another table meanwhile.
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

-- This table records the files that sessions changed themselves, as reported by their clients. Together with the files
-- that tasks changed, it shows which sessions and tasks changed the same files.
CREATE TABLE edit (
    seq     INTEGER PRIMARY KEY,
    origin  INTEGER NOT NULL REFERENCES session (seq),
    project ANY NOT NULL,
    path    ANY NOT NULL,
    at      INTEGER NOT NULL
) STRICT;

CREATE INDEX edit_time ON edit (project, at);
