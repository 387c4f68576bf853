-- +goose Up

-- What was decided about links, keys and hosts (package moderation): one row per entry,
-- never changed but by erasing its texts. Of a text that was erased the salt and the body
-- are empty; of one that never was, the commitment is empty too.
CREATE TABLE journal (
    sequence       INTEGER PRIMARY KEY, -- from 1, without a gap
    at             INTEGER NOT NULL,    -- Unix milliseconds, never less than in the row before
    kind           TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    link           BLOB    NOT NULL,    -- UUIDv7; empty when the entry is about no link
    action         TEXT    NOT NULL,
    safety         INTEGER NOT NULL,
    score          INTEGER NOT NULL,
    actor          TEXT    NOT NULL,
    reason         TEXT    NOT NULL,
    reason_salt    BLOB    NOT NULL,
    reason_hash    BLOB    NOT NULL,    -- commitment
    evidence       TEXT    NOT NULL,
    evidence_salt  BLOB    NOT NULL,
    evidence_hash  BLOB    NOT NULL,
    hash           BLOB    NOT NULL     -- of this row and of the hash before
) STRICT;

CREATE INDEX journal_by_entity ON journal (kind, name, sequence);
CREATE INDEX journal_by_actor ON journal (actor, sequence);
CREATE INDEX journal_by_time ON journal (at, sequence);
CREATE INDEX journal_by_link ON journal (link, sequence) WHERE action IN ('decide', 'answer');
CREATE INDEX journal_bans ON journal (sequence) WHERE action IN ('ban', 'lift');

-- How much of the journal has taken effect: one row, JSON.
CREATE TABLE journal_progress (
    n        INTEGER PRIMARY KEY CHECK (n = 1),
    progress TEXT    NOT NULL
) STRICT;
