-- `observe` is the method by which the effects of a task are observed.
ALTER TABLE task ADD COLUMN observe TEXT NOT NULL DEFAULT 'auto'
    CHECK (observe IN ('auto', 'syscalls', 'watch', 'compare', 'off'));
