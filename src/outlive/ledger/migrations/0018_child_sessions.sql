-- A client's own task may be a child session: a session that the client keeps in a store of its own, for a sub-agent.
-- `absent` is since when (a tick) the client no longer lists a child session, and `unread` since when the client cannot
-- read the state of one. A reason says that the child session was given up as lost. Its row stays open until the parent
-- has been told.
ALTER TABLE foreign_task ADD COLUMN kind TEXT NOT NULL DEFAULT 'command' CHECK (kind IN ('command', 'session'));
ALTER TABLE foreign_task ADD COLUMN agent ANY;
ALTER TABLE foreign_task ADD COLUMN parent ANY;
ALTER TABLE foreign_task ADD COLUMN unread TEXT;
ALTER TABLE foreign_task ADD COLUMN reason TEXT CHECK (reason IS NULL OR reason IN ('unobservable'));
