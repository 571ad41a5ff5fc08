-- `takes_input` says whether text can be sent to a task's stdin.
ALTER TABLE task ADD COLUMN takes_input INTEGER NOT NULL DEFAULT 0;
