-- +goose Up

-- Dedupe asks for links that answer visitors alike, now and later, so the expiry is
-- part of the key: links that are over never lie in the way of the one that lives.
DROP INDEX links_by_destination;
CREATE INDEX links_by_twins ON links (workspace, digest, expires, id)
    WHERE status = 1 AND safety = 1 AND max_clicks = 0;

-- What the idempotency keys of callers stand for, for a day.
CREATE TABLE idempotency (
    caller  TEXT    NOT NULL, -- id of the API key
    name    TEXT    NOT NULL, -- the caller's Idempotency-Key
    request BLOB    NOT NULL, -- SHA-256 of the request
    id      BLOB    NOT NULL, -- of the link
    domain  TEXT    NOT NULL,
    code    TEXT    NOT NULL,
    minted  INTEGER NOT NULL,
    found   INTEGER NOT NULL,
    created INTEGER NOT NULL, -- Unix milliseconds
    PRIMARY KEY (caller, name)
) WITHOUT ROWID, STRICT;

-- The sweeper.
CREATE INDEX idempotency_by_age ON idempotency (created);
