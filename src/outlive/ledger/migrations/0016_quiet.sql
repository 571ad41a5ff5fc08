-- A task may ask that its success without output is left to the next turn. A CHECK cannot be changed in place, and a new
-- table would take with it every row that refers to the old one. So a new column takes the place of the old one.
ALTER TABLE task ADD COLUMN notify_16 TEXT NOT NULL DEFAULT 'end'
    CHECK (notify_16 IN ('all', 'end', 'output', 'failure', 'never'));
UPDATE task SET notify_16 = notify WHERE notify <> 'end';
ALTER TABLE task DROP COLUMN notify;
ALTER TABLE task RENAME COLUMN notify_16 TO notify;

-- Whether a notice is left to the next turn: it wakes no session and makes none go on.
ALTER TABLE notice ADD COLUMN is_quiet INTEGER NOT NULL DEFAULT 0;
