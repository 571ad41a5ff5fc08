-- A task whose process somebody else started: that process, and the file that its output is copied from.
ALTER TABLE task ADD COLUMN adopted_pid INTEGER;
ALTER TABLE task ADD COLUMN adopted_output ANY;
