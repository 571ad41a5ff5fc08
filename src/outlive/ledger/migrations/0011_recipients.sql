-- This migration records which sessions get the notice of an ending if the session that launched the task has ended.
-- `parent` is the session whose task launched this session.
ALTER TABLE session ADD COLUMN parent INTEGER REFERENCES session (seq);
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;
UPDATE session SET parent = (
    SELECT outer_task.origin FROM task JOIN task outer_task ON outer_task.id = task.parent
    WHERE task.origin = session.seq AND outer_task.origin <> session.seq ORDER BY task.seq LIMIT 1);

-- The sessions that were shown a task of an earlier session as running.
CREATE TABLE shown (
    task    TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    session INTEGER NOT NULL REFERENCES session (seq),
    PRIMARY KEY (task, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX shown_session ON shown (session);

CREATE INDEX notice_presented ON notice (presented_to, seq) WHERE state = 'presented';
