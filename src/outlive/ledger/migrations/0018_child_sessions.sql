-- A client's own task may be a child session: a session that the client keeps in a store of its own, for a sub-agent.
-- `absent` is the tick since which the client no longer lists a child session. `unread` is the tick since which the
-- client cannot read the state of a child session. `reason` is set if the child session was given up as lost. The row
-- stays open until the parent session has got a report of this.
ALTER TABLE foreign_task ADD COLUMN kind TEXT NOT NULL DEFAULT 'command' CHECK (kind IN ('command', 'session'));
ALTER TABLE foreign_task ADD COLUMN agent ANY;
ALTER TABLE foreign_task ADD COLUMN parent ANY;
ALTER TABLE foreign_task ADD COLUMN unread TEXT;
ALTER TABLE foreign_task ADD COLUMN reason TEXT CHECK (reason IS NULL OR reason IN ('unobservable'));
