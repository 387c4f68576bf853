-- +goose Up

-- The processes that work on these links, by the names of their data folders: how much of
-- the journal has taken effect in each (JSON), and when it said so. Until now there was
-- one at a time, which a row in holder saw to.
CREATE TABLE instances (
    name     text        COLLATE "C" PRIMARY KEY,
    kept     timestamptz NOT NULL,
    progress text        NOT NULL
);

INSERT INTO instances (name, kept, progress) SELECT '', now(), progress FROM journal_progress;

DROP TABLE journal_progress;
DROP TABLE holder;
