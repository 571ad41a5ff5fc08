-- These columns record what a task waits for, how long it may be idle or queued, and how often it is retried.
-- `after` is [[task, any_ending], ...], and `claims` is [[name, room], ...]. They are read only for attempts that have
-- not ended, so they need no tables and no indexes of their own.
ALTER TABLE task ADD COLUMN after TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN claims TEXT NOT NULL DEFAULT '[]';
ALTER TABLE task ADD COLUMN idle_timeout INTEGER;
ALTER TABLE task ADD COLUMN queue_timeout INTEGER;
ALTER TABLE task ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;

-- `ticket` is the attempt's place in the queue, drawn when its dependencies are met. `not_before` is the time before
-- which a retry must not start.
ALTER TABLE attempt ADD COLUMN ticket INTEGER;
ALTER TABLE attempt ADD COLUMN not_before INTEGER;
ALTER TABLE attempt ADD COLUMN automatic INTEGER NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX attempt_ticket ON attempt (ticket) WHERE ticket IS NOT NULL;

-- If an attempt is retried automatically, its notice has the kind `retrying`, and no notice of an ending is written.
DROP INDEX notice_one_ending;
CREATE UNIQUE INDEX notice_one_ending ON notice (task, attempt) WHERE kind IN ('ended', 'lost', 'retrying');

-- Every settlement searches for tasks that may be deleted, and sometimes also sums up the size of all output. This
-- index serves both queries.
DROP INDEX attempt_retention;
CREATE INDEX attempt_retention ON attempt (delete_after, output_bytes, output_dropped) WHERE delete_after IS NOT NULL;
