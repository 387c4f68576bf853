-- +goose Up

-- Lines of the lists that moderators maintain. Author, time and reason are in the journal.
CREATE TABLE list_lines (
    kind     text   NOT NULL,
    name     text   COLLATE "C" NOT NULL, -- the line, in canonical form
    sequence bigint NOT NULL, -- of the journal entry that listed it
    PRIMARY KEY (kind, name)
);
