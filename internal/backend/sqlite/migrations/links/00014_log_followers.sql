-- +goose Up

-- How far those have read the change log of which a fleet has one each.
CREATE TABLE log_followers (
    name  TEXT    PRIMARY KEY,
    fence INTEGER NOT NULL, -- of the lease under which the position was kept
    seq   INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
