-- For a task whose process Outlive did not start, these columns have the process id and the file from which the output
-- is copied.
ALTER TABLE task ADD COLUMN adopted_pid INTEGER;
ALTER TABLE task ADD COLUMN adopted_output ANY;
