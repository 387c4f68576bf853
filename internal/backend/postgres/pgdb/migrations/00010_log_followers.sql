-- +goose Up

-- How far those have read the change log of which a fleet has one each.
CREATE TABLE log_followers (
    name  text   PRIMARY KEY,
    fence bigint NOT NULL, -- of the lease under which the position was kept
    seq   bigint NOT NULL
);
