-- The directory in which a client runs a command by itself.
ALTER TABLE foreign_task ADD COLUMN cwd ANY;
