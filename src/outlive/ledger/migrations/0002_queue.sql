-- What a task waits for, how long it may be idle or wait, and how often it is tried again.
-- `after` is [[task, any_ending], ...]; `claims` is [[name, room], ...]: only live attempts are ever
-- asked for them, so they need no tables and no indexes of their own.
ALTER TABLE task ADD COLUMN after TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN claims TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN idle_timeout INTEGER;
ALTER TABLE task ADD COLUMN queue_timeout INTEGER;
ALTER TABLE task ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;

-- The place in line, drawn when the dependencies are met; and for a retry when it may begin.
ALTER TABLE attempt ADD COLUMN ticket INTEGER;
ALTER TABLE attempt ADD COLUMN not_before INTEGER;
ALTER TABLE attempt ADD COLUMN automatic INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX attempt_ticket ON attempt (ticket) WHERE ticket IS NOT NULL;

-- An attempt that is tried again by itself is told of as that, and not as an ending.
DROP INDEX notice_one_ending;
CREATE UNIQUE INDEX notice_one_ending ON notice (task, attempt) WHERE kind IN ('ended', 'lost', 'retrying');

-- What may be deleted is looked for by every settlement; how much there is, now and then.
DROP INDEX attempt_retention;
CREATE INDEX attempt_retention ON attempt (delete_after, output_bytes, output_dropped) WHERE delete_after IS NOT NULL;
