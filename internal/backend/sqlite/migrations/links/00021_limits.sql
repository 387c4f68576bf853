-- +goose Up

-- Rate limits: when each bucket is full, so that limits survive a restart. Full buckets are removed.
CREATE TABLE limits (
    kind    TEXT    NOT NULL,
    bucket  INTEGER NOT NULL, -- a keyed hash of its name
    full_at INTEGER NOT NULL, -- Unix milliseconds
    size    INTEGER NOT NULL, -- milliseconds in which an empty bucket fills
    changed INTEGER NOT NULL, -- Unix milliseconds
    PRIMARY KEY (kind, bucket)
) WITHOUT ROWID, STRICT;
CREATE INDEX limits_changed ON limits (kind, changed);
CREATE INDEX limits_full ON limits (full_at);

-- How many links each creator has created in each minute of the last hour.
CREATE TABLE creator_minutes (
    creator INTEGER NOT NULL, -- a keyed hash of a key or a network
    minute  INTEGER NOT NULL, -- since 1970
    links   INTEGER NOT NULL,
    PRIMARY KEY (creator, minute)
) WITHOUT ROWID, STRICT;
CREATE INDEX creator_minutes_minute ON creator_minutes (minute);
