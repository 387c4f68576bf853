-- +goose Up

-- Which server does a job that one of a fleet does.
CREATE TABLE job_leases (
    name   TEXT    PRIMARY KEY, -- of the job
    holder TEXT    NOT NULL,
    fence  INTEGER NOT NULL,    -- grows from holder to holder
    until  INTEGER NOT NULL     -- Unix milliseconds; 0 = released
) WITHOUT ROWID, STRICT;
