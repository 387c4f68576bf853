-- +goose Up

-- What was decided about links, keys and hosts (package moderation): one row per entry,
-- never changed but by erasing its texts. Of a text that was erased the salt and the body
-- are empty; of one that never was, the commitment is empty too.
CREATE TABLE journal (
    sequence      bigint   PRIMARY KEY, -- from 1, without a gap
    at            bigint   NOT NULL,    -- Unix milliseconds, never less than in the row before
    kind          text     NOT NULL,
    name          text     NOT NULL,
    link          uuid     NULL,        -- NULL when the entry is about no link
    action        text     NOT NULL,
    safety        smallint NOT NULL,
    score         smallint NOT NULL,
    actor         text     NOT NULL,
    reason        bytea    NOT NULL, -- any text, also one with NUL; as evidence and all that people write below
    reason_salt   bytea    NOT NULL,
    reason_hash   bytea    NOT NULL,    -- commitment
    evidence      bytea    NOT NULL,
    evidence_salt bytea    NOT NULL,
    evidence_hash bytea    NOT NULL,
    hash          bytea    NOT NULL     -- of this row and of the hash before
);

CREATE INDEX journal_by_entity ON journal (kind, name, sequence);
CREATE INDEX journal_by_actor ON journal (actor, sequence);
CREATE INDEX journal_by_time ON journal (at, sequence);
CREATE INDEX journal_by_link ON journal (link, sequence) WHERE action IN ('decide', 'answer');
CREATE INDEX journal_bans ON journal (sequence) WHERE action IN ('ban', 'lift');

-- How much of the journal has taken effect: JSON.
CREATE TABLE journal_progress (
    n        smallint PRIMARY KEY CHECK (n = 1),
    progress text     NOT NULL
);

-- Whoever appends holds this row until the commit, so that the chain has one order.
CREATE TABLE journal_end (
    n smallint PRIMARY KEY CHECK (n = 1)
);

INSERT INTO journal_end (n) VALUES (1);

-- Links under review (package moderation). Times are Unix milliseconds, 0 = none.
CREATE TABLE cases (
    id         uuid     PRIMARY KEY, -- version 7
    link       uuid     NOT NULL,    -- the link's id
    domain     text     NOT NULL,
    code       text     NOT NULL,
    workspace  text     NOT NULL, -- '' = the link is not there yet
    host       text     NOT NULL, -- of the destination when the case was opened
    sources    smallint NOT NULL, -- bits: policy, report, appeal
    score      smallint NOT NULL,
    opened     bigint   NOT NULL,
    due        bigint   NOT NULL,
    reports    bigint   NOT NULL DEFAULT 0,
    by_category bigint[] NOT NULL DEFAULT '{0,0,0,0,0}', -- reports, from 1: phishing, malware, spam, illegal, other
    first      bigint   NOT NULL DEFAULT 0, -- report
    last       bigint   NOT NULL DEFAULT 0, -- report
    closed     bigint   NOT NULL DEFAULT 0,
    decided_by text     NOT NULL DEFAULT '',
    decided    smallint NOT NULL DEFAULT 0,
    sequence   bigint   NOT NULL DEFAULT 0 -- of the journal's entry that closed it
);

CREATE UNIQUE INDEX cases_open ON cases (link) WHERE closed = 0;
CREATE INDEX cases_by_link ON cases (link, closed);
CREATE INDEX cases_by_due ON cases (due) WHERE closed = 0;
CREATE INDEX cases_pending ON cases (id) WHERE workspace = '';
CREATE INDEX cases_by_end ON cases (closed) WHERE closed <> 0;

-- What reporters wrote: the newest of each case.
CREATE TABLE case_notes (
    n        bigint   GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    case_id  uuid     NOT NULL,
    at       bigint   NOT NULL,
    category smallint NOT NULL,
    text     bytea    NOT NULL,
    contact  bytea    NOT NULL,
    erased   boolean  NOT NULL
);

CREATE INDEX case_notes_by_case ON case_notes (case_id, n);

-- Keyed digests of the networks that reported a case on its newest day of reports.
CREATE TABLE case_networks (
    case_id uuid   NOT NULL,
    day     bigint NOT NULL, -- since 1970-01-01 UTC
    digest  bigint NOT NULL,
    PRIMARY KEY (case_id, day, digest)
);

CREATE TABLE appeals (
    id          uuid     PRIMARY KEY, -- version 7
    link        uuid     NOT NULL,
    domain      text     NOT NULL,
    code        text     NOT NULL,
    token       bytea    NOT NULL UNIQUE, -- SHA-256
    at          bigint   NOT NULL,
    made_by     text     NOT NULL, -- id of the key; '' = nobody's
    against     bigint   NOT NULL, -- sequence of the decision
    reason      bytea    NOT NULL,
    erased      boolean  NOT NULL DEFAULT false,
    answered    bigint   NOT NULL DEFAULT 0,
    answered_by text     NOT NULL DEFAULT '',
    safety      smallint NOT NULL DEFAULT 0,
    answer      bytea    NOT NULL DEFAULT '',
    sequence    bigint   NOT NULL DEFAULT 0 -- of the journal's entry that answered
);

CREATE UNIQUE INDEX appeals_open ON appeals (link) WHERE answered = 0;
CREATE INDEX appeals_by_link ON appeals (link, id);
CREATE INDEX appeals_by_end ON appeals (answered) WHERE answered <> 0 AND NOT erased;

-- How far who follows the journal has come.
CREATE TABLE followers (
    name     text   PRIMARY KEY,
    position bigint NOT NULL
);

INSERT INTO followers (name, position) VALUES ('cases', 0);
