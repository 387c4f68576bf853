-- +goose Up

-- Long work of workspaces, such as imports.
CREATE TABLE jobs (
    id          BLOB    PRIMARY KEY,
    workspace   TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    created_by  TEXT    NOT NULL, -- the key whose rights it has
    options     TEXT    NOT NULL, -- JSON
    size        INTEGER NOT NULL, -- of the input, as its sender said; 0 = unknown
    uploaded    INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    progress    TEXT    NOT NULL, -- JSON
    error       TEXT    NOT NULL,
    result      INTEGER NOT NULL, -- bytes
    stored      INTEGER NOT NULL, -- bytes of its chunks, as compressed
    input       BLOB,             -- the job under which the chunks of its input are; NULL = another job has them
    holder      TEXT    NOT NULL, -- the server that has it; empty = none
    fence       INTEGER NOT NULL, -- grows from claim to claim
    until       INTEGER NOT NULL, -- nobody but the holder claims it before
    created     INTEGER NOT NULL, -- Unix milliseconds, as all times
    updated     INTEGER NOT NULL,
    expires     INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE INDEX jobs_by_workspace ON jobs (workspace, id);
CREATE INDEX jobs_waiting ON jobs (until, id) WHERE state IN ('queued', 'running', 'canceling');

CREATE TABLE job_chunks (
    job   BLOB    NOT NULL, -- of the input the one that uploaded it
    part  INTEGER NOT NULL, -- 1 = input, 2 = result
    start INTEGER NOT NULL, -- where it begins in the part
    data  BLOB    NOT NULL, -- compressed
    PRIMARY KEY (job, part, start)
) STRICT;
