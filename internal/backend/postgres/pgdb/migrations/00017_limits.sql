-- +goose Up

-- Rate limits: when each bucket is full, so that limits survive a restart. Full buckets are removed.
CREATE TABLE limits (
    kind    text   NOT NULL,
    bucket  bigint NOT NULL, -- a keyed hash of its name
    full_at bigint NOT NULL, -- Unix milliseconds by this database's clock
    size    bigint NOT NULL, -- milliseconds in which an empty bucket fills
    changed bigint NOT NULL, -- Unix milliseconds by this database's clock
    PRIMARY KEY (kind, bucket)
);
CREATE INDEX limits_changed ON limits (kind, changed);
CREATE INDEX limits_full ON limits (full_at);

-- How many links each creator has created in each minute of the last hour.
CREATE TABLE creator_minutes (
    creator bigint NOT NULL, -- a keyed hash of a key or a network
    minute  bigint NOT NULL, -- since 1970
    links   bigint NOT NULL,
    PRIMARY KEY (creator, minute)
);
CREATE INDEX creator_minutes_minute ON creator_minutes (minute);
