-- +goose Up

-- Which server does a job that one of a fleet does.
CREATE TABLE job_leases (
    name   text   PRIMARY KEY, -- of the job
    holder text   NOT NULL,
    fence  bigint NOT NULL,    -- grows from holder to holder
    until  bigint NOT NULL     -- Unix milliseconds by this database's clock; 0 = released
);
