-- +goose Up

-- Destinations that the score kept an account from linking to, and what was decided about them
-- (package moderation). The cases of them have their ids as links. Times are Unix milliseconds, 0 = none.
CREATE TABLE destinations (
    id         BLOB    PRIMARY KEY, -- UUIDv7
    workspace  TEXT    NOT NULL,
    digest     BLOB    NOT NULL, -- SHA-256
    url        TEXT    NOT NULL, -- '' = erased
    created_by TEXT    NOT NULL, -- id of the key of the first create
    network    INTEGER NOT NULL, -- keyed digest, of the day of the first create
    score      INTEGER NOT NULL,
    evidence   TEXT    NOT NULL, -- JSON
    refused    INTEGER NOT NULL, -- creates
    first      INTEGER NOT NULL,
    last       INTEGER NOT NULL,
    decided    INTEGER NOT NULL DEFAULT 0, -- safety
    everyone   INTEGER NOT NULL DEFAULT 0,
    decided_at INTEGER NOT NULL DEFAULT 0,
    sequence   INTEGER NOT NULL DEFAULT 0, -- of the journal's entry that decided
    erased     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID, STRICT;

CREATE UNIQUE INDEX destinations_by_digest ON destinations (digest, workspace);
CREATE INDEX destinations_open ON destinations (workspace) WHERE decided = 0;
CREATE INDEX destinations_by_network ON destinations (network) WHERE decided = 0;
CREATE INDEX destinations_by_age ON destinations (max(first, decided_at)) WHERE erased = 0;

CREATE INDEX journal_verdicts ON journal (sequence) WHERE kind = 'destination' AND action IN ('decide', 'answer');
