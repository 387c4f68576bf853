-- +goose Up

-- Lines of the lists that moderators maintain. Author, time and reason are in the journal.
CREATE TABLE list_lines (
    kind     TEXT    NOT NULL,
    name     TEXT    NOT NULL, -- the line, in canonical form
    sequence INTEGER NOT NULL, -- of the journal entry that listed it
    PRIMARY KEY (kind, name)
) WITHOUT ROWID, STRICT;
