-- +goose Up

-- Links that were clicked, with their clicks as of some seconds ago.
CREATE TABLE ranks (
    id        BLOB    PRIMARY KEY,
    workspace TEXT    NOT NULL,
    domain    TEXT    NOT NULL,
    code      TEXT    NOT NULL,
    clicks    INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE INDEX ranks_of_workspace ON ranks (workspace, clicks, id);
CREATE INDEX ranks_of_all ON ranks (clicks, id);

-- Which batches of clicks they include. One row.
CREATE TABLE ranked (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    generation INTEGER NOT NULL
) STRICT;

INSERT INTO ranked (one, generation) VALUES (1, 0);
