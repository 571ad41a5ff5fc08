-- This table records the commands that clients run in their own background, as reported by the clients.
-- `process` is the client's process at the time of the report, because the session may continue in another process.
-- `absent` is the tick since which a command of a client that has exited has been out of sight.
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
