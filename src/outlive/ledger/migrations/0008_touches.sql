-- `touches` has the paths, as JSON, that the task is going to change according to its launch.
ALTER TABLE task ADD COLUMN touches TEXT NOT NULL DEFAULT '[]';
