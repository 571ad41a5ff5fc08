-- Whether a task can be sent something to read.
ALTER TABLE task ADD COLUMN takes_input INTEGER NOT NULL DEFAULT 0;
