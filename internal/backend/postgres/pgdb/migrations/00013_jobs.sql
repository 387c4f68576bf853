-- +goose Up

-- Long work of workspaces, such as imports.
CREATE TABLE jobs (
    id          uuid   PRIMARY KEY,
    workspace   text   NOT NULL,
    kind        text   NOT NULL,
    created_by  text   NOT NULL, -- the key whose rights it has
    options     bytea  NOT NULL, -- JSON
    size        bigint NOT NULL, -- of the input, as its sender said; 0 = unknown
    uploaded    bigint NOT NULL,
    state       text   NOT NULL,
    progress    bytea  NOT NULL, -- JSON
    error       bytea  NOT NULL,
    result      bigint NOT NULL, -- bytes
    stored      bigint NOT NULL, -- bytes of its chunks, as compressed
    input       uuid,            -- the job under which the chunks of its input are; NULL = another job has them
    holder      text   NOT NULL, -- the server that has it; empty = none
    fence       bigint NOT NULL, -- grows from claim to claim
    until       bigint NOT NULL, -- nobody but the holder claims it before
    created     bigint NOT NULL, -- Unix milliseconds by this database's clock, as all times
    updated     bigint NOT NULL,
    expires     bigint NOT NULL
);

CREATE INDEX jobs_by_workspace ON jobs (workspace, id);
CREATE INDEX jobs_waiting ON jobs (until, id) WHERE state IN ('queued', 'running', 'canceling');

CREATE TABLE job_chunks (
    job   uuid   NOT NULL, -- of the input the one that uploaded it
    part  bigint NOT NULL, -- 1 = input, 2 = result
    start bigint NOT NULL, -- where it begins in the part
    data  bytea  NOT NULL, -- compressed
    PRIMARY KEY (job, part, start)
);

-- What is compressed already is not compressed again.
ALTER TABLE job_chunks ALTER COLUMN data SET STORAGE EXTERNAL;
