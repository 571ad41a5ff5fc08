-- The fingerprint distinguishes this ledger from every other ledger, and from an older copy of this ledger.
CREATE TABLE fingerprint (
    name     TEXT NOT NULL,
    attempts INTEGER NOT NULL
) STRICT;

INSERT INTO fingerprint SELECT lower(hex(randomblob(8))), count(*) FROM attempt;

CREATE TRIGGER attempt_counted AFTER INSERT ON attempt BEGIN
    UPDATE fingerprint SET attempts = attempts + 1;
END;
