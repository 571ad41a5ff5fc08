-- `left_path` has the paths that a task without success left changed, so that its journal need not be read again.
-- `left_known` is 1 if `left_path` has all these paths. Otherwise, for example for attempts of an older schema, only
-- the journal has all of them.
ALTER TABLE attempt ADD COLUMN left_known INTEGER NOT NULL DEFAULT 0;

CREATE TABLE left_path (
    task         TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    path         BLOB NOT NULL,
    name         BLOB NOT NULL,
    scope        BLOB NOT NULL,
    is_stash     INTEGER NOT NULL,
    opened_at    INTEGER NOT NULL,
    command      BLOB NOT NULL,
    found        TEXT NOT NULL,
    left         TEXT NOT NULL,
    must_be_same INTEGER NOT NULL,
    written      INTEGER NOT NULL,
    PRIMARY KEY (task, path)
) STRICT, WITHOUT ROWID;

CREATE INDEX left_path_path ON left_path (path);
