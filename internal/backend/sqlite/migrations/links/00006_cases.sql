-- +goose Up

-- Links under review (package moderation). Times are Unix milliseconds, 0 = none.
CREATE TABLE cases (
    id         BLOB    PRIMARY KEY, -- UUIDv7
    link       BLOB    NOT NULL,    -- the link's id
    domain     TEXT    NOT NULL,
    code       TEXT    NOT NULL,
    workspace  TEXT    NOT NULL, -- '' = the link is not there yet
    host       TEXT    NOT NULL, -- of the destination when the case was opened
    sources    INTEGER NOT NULL, -- bits: policy, report, appeal
    score      INTEGER NOT NULL,
    opened     INTEGER NOT NULL,
    due        INTEGER NOT NULL,
    reports    INTEGER NOT NULL DEFAULT 0,
    phishing   INTEGER NOT NULL DEFAULT 0,
    malware    INTEGER NOT NULL DEFAULT 0,
    spam       INTEGER NOT NULL DEFAULT 0,
    illegal    INTEGER NOT NULL DEFAULT 0,
    other      INTEGER NOT NULL DEFAULT 0,
    first      INTEGER NOT NULL DEFAULT 0, -- report
    last       INTEGER NOT NULL DEFAULT 0, -- report
    closed     INTEGER NOT NULL DEFAULT 0,
    decided_by TEXT    NOT NULL DEFAULT '',
    decided    INTEGER NOT NULL DEFAULT 0,
    sequence   INTEGER NOT NULL DEFAULT 0 -- of the journal's entry that closed it
) WITHOUT ROWID, STRICT;

CREATE UNIQUE INDEX cases_open ON cases (link) WHERE closed = 0;
CREATE INDEX cases_by_link ON cases (link, closed);
CREATE INDEX cases_by_due ON cases (due) WHERE closed = 0;
CREATE INDEX cases_pending ON cases (id) WHERE workspace = '';
CREATE INDEX cases_by_end ON cases (closed) WHERE closed <> 0;

-- What reporters wrote: the newest of each case.
CREATE TABLE case_notes (
    n        INTEGER PRIMARY KEY,
    case_id  BLOB    NOT NULL,
    at       INTEGER NOT NULL,
    category INTEGER NOT NULL,
    text     TEXT    NOT NULL,
    contact  TEXT    NOT NULL,
    erased   INTEGER NOT NULL
) STRICT;

CREATE INDEX case_notes_by_case ON case_notes (case_id, n);

-- Keyed digests of the networks that reported a case on its newest day of reports.
CREATE TABLE case_networks (
    case_id BLOB    NOT NULL,
    day     INTEGER NOT NULL, -- since 1970-01-01 UTC
    digest  INTEGER NOT NULL,
    PRIMARY KEY (case_id, day, digest)
) WITHOUT ROWID, STRICT;

CREATE TABLE appeals (
    id          BLOB    PRIMARY KEY, -- UUIDv7
    link        BLOB    NOT NULL,
    domain      TEXT    NOT NULL,
    code        TEXT    NOT NULL,
    token       BLOB    NOT NULL UNIQUE, -- SHA-256
    at          INTEGER NOT NULL,
    made_by     TEXT    NOT NULL, -- id of the key; '' = nobody's
    against     INTEGER NOT NULL, -- sequence of the decision
    reason      TEXT    NOT NULL,
    erased      INTEGER NOT NULL,
    answered    INTEGER NOT NULL,
    answered_by TEXT    NOT NULL,
    safety      INTEGER NOT NULL,
    answer      TEXT    NOT NULL,
    sequence    INTEGER NOT NULL -- of the journal's entry that answered
) WITHOUT ROWID, STRICT;

CREATE UNIQUE INDEX appeals_open ON appeals (link) WHERE answered = 0;
CREATE INDEX appeals_by_link ON appeals (link, id);
CREATE INDEX appeals_by_end ON appeals (answered) WHERE answered <> 0 AND erased = 0;

-- How far who follows the journal has come.
CREATE TABLE followers (
    name     TEXT    PRIMARY KEY,
    position INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

INSERT INTO followers (name, position) VALUES ('cases', 0);
