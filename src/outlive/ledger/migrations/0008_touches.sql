-- What a launch says that its task is going to touch: paths, as JSON.
ALTER TABLE task ADD COLUMN touches TEXT NOT NULL DEFAULT '[]';
