-- `started_at` is the time of the client's first report of a command. `ended_at` is the time when the client reported
-- its end, or when the command was found lost.
ALTER TABLE foreign_task ADD COLUMN started_at INTEGER;
ALTER TABLE foreign_task ADD COLUMN ended_at INTEGER;
