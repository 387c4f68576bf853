-- +goose Up

-- The queue of moderators is read in one of four orders, each page from where the one
-- before ended. SQLite continues behind a position by columns, not by expressions: these
-- columns are computed, and stored in the indexes alone.
DROP INDEX cases_by_due;

ALTER TABLE cases ADD COLUMN open INTEGER NOT NULL GENERATED ALWAYS AS (closed = 0) VIRTUAL;
ALTER TABLE cases ADD COLUMN appealed_first INTEGER NOT NULL GENERATED ALWAYS AS (-((sources & 4) >> 2)) VIRTUAL;
ALTER TABLE cases ADD COLUMN gravest_first INTEGER NOT NULL GENERATED ALWAYS AS (-score) VIRTUAL;
ALTER TABLE cases ADD COLUMN loudest_first INTEGER NOT NULL GENERATED ALWAYS AS (-reports) VIRTUAL;
ALTER TABLE cases ADD COLUMN newest_first INTEGER NOT NULL GENERATED ALWAYS AS (-opened) VIRTUAL;

-- Which entry of the journal closed a case of a link, in the order of the journal.
CREATE INDEX cases_closed_by ON cases (link, sequence) WHERE closed <> 0;

CREATE INDEX cases_by_due ON cases (open, appealed_first, due, id) WHERE workspace <> '';
CREATE INDEX cases_by_score ON cases (open, gravest_first, due, id) WHERE workspace <> '';
CREATE INDEX cases_by_reports ON cases (open, loudest_first, due, id) WHERE workspace <> '';
CREATE INDEX cases_by_age ON cases (open, newest_first, id) WHERE workspace <> '';
