-- What clients run in the background by themselves, as they tell it, until they say that it has ended.
-- `process` is the client's, as its session named it then: a session may go on in another one. `absent` is since when (a tick) one whose client is gone has been out of sight.
CREATE TABLE foreign_task (
    seq         INTEGER PRIMARY KEY,
    origin      INTEGER NOT NULL REFERENCES session (seq),
    client      TEXT NOT NULL,
    id          ANY NOT NULL,
    command     ANY NOT NULL,
    description ANY,
    output      ANY,
    process     TEXT,
    seen_at     INTEGER NOT NULL,
    absent      TEXT,
    state       TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'ended', 'lost')),
    UNIQUE (origin, id)
) STRICT;

CREATE INDEX foreign_task_open ON foreign_task (origin) WHERE state = 'running';
