-- `reserved_by` is the lease of a client that waits for the ending of this task. While the lease is valid, no other
-- process delivers the notice of the ending.
ALTER TABLE task ADD COLUMN reserved_by TEXT;
