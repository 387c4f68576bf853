-- +goose Up

-- Destinations that the score kept an account from linking to, and what was decided about them
-- (package moderation). The cases of them have their ids as links. Times are Unix milliseconds, 0 = none.
CREATE TABLE destinations (
    id         uuid     PRIMARY KEY, -- version 7
    workspace  text     NOT NULL,
    digest     bytea    NOT NULL, -- SHA-256
    url        bytea    NOT NULL, -- empty = erased
    created_by text     NOT NULL, -- id of the key of the first create
    network    bigint   NOT NULL, -- keyed digest, of the day of the first create
    score      smallint NOT NULL,
    evidence   bytea    NOT NULL, -- JSON
    refused    bigint   NOT NULL, -- creates
    first      bigint   NOT NULL,
    last       bigint   NOT NULL,
    decided    smallint NOT NULL DEFAULT 0, -- safety
    everyone   boolean  NOT NULL DEFAULT false,
    decided_at bigint   NOT NULL DEFAULT 0,
    sequence   bigint   NOT NULL DEFAULT 0, -- of the journal's entry that decided
    erased     boolean  NOT NULL DEFAULT false
);

CREATE UNIQUE INDEX destinations_by_digest ON destinations (digest, workspace);
CREATE INDEX destinations_open ON destinations (workspace) WHERE decided = 0;
CREATE INDEX destinations_by_network ON destinations (network) WHERE decided = 0;
CREATE INDEX destinations_by_age ON destinations (greatest(first, decided_at)) WHERE NOT erased;

CREATE INDEX journal_verdicts ON journal (sequence) WHERE kind = 'destination' AND action IN ('decide', 'answer');
