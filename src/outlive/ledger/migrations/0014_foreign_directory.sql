-- `cwd` is the directory in which a client runs a command in its own background.
ALTER TABLE foreign_task ADD COLUMN cwd ANY;
