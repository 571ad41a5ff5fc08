-- What a task that ended without success left changed, so that nobody has to replay its journal to ask for it.
-- `left_known` is 1 when `left_path` has all of it; until then, and for attempts of an older schema, the journal has.
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
