-- The lease of a client that asks for the ending of this task itself. While the lease is held, nobody else tells it.
ALTER TABLE task ADD COLUMN reserved_by TEXT;
