-- +goose Up

-- Up to where a change log of several partitions was read, as text; '' = changes says it.
ALTER TABLE state ADD COLUMN partitions TEXT NOT NULL DEFAULT '';
