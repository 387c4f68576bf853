-- +goose Up

-- Which links with counted codes each transaction stored: their rows, as varints of the
-- differences. The newest row is never deleted, so that seq never repeats.
CREATE TABLE creates (
    seq  INTEGER PRIMARY KEY,
    rows BLOB NOT NULL
) STRICT;

-- Up to which id each counter of codes was leased by a release that writes creates: what lies
-- between it and the lease was created by the release before.
CREATE TABLE creates_leased (
    counter TEXT    PRIMARY KEY,
    next    INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
INSERT INTO creates_leased (counter, next) SELECT counter, next FROM leases;
