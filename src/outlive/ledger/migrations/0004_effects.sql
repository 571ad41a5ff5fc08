-- How a task is to be observed.
ALTER TABLE task ADD COLUMN observe TEXT NOT NULL DEFAULT 'auto'
    CHECK (observe IN ('auto', 'syscalls', 'watch', 'compare', 'off'));
