-- With `notify = 'output'`, a success without output is reported only at the next turn. A CHECK cannot be changed in
-- place. A new table would delete all rows that refer to the old table. So a new column replaces the old column.
ALTER TABLE task ADD COLUMN notify_16 TEXT NOT NULL DEFAULT 'end'
    CHECK (notify_16 IN ('all', 'end', 'output', 'failure', 'never'));
UPDATE task SET notify_16 = notify WHERE notify <> 'end';
ALTER TABLE task DROP COLUMN notify;
ALTER TABLE task RENAME COLUMN notify_16 TO notify;

-- `is_quiet` says whether a notice waits for the next turn. Such a notice does not wake a session or continue a turn.
ALTER TABLE notice ADD COLUMN is_quiet INTEGER NOT NULL DEFAULT 0;
