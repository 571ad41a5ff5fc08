-- When the client spoke of a command of its own first, and when it said that the command had ended, or nobody saw it any more.
ALTER TABLE foreign_task ADD COLUMN started_at INTEGER;
ALTER TABLE foreign_task ADD COLUMN ended_at INTEGER;
