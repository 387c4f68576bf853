-- +goose Up

-- Aliases that a workspace holds for some minutes. Each has an entry in aliases, whose n is the lowest integer and
-- no row of links: a create meets it where it meets other aliases, and looks nowhere else.
CREATE TABLE reservations (
    domain    TEXT    NOT NULL, -- '' = the default domain
    code      TEXT    NOT NULL,
    workspace TEXT    NOT NULL,
    since     INTEGER NOT NULL, -- Unix milliseconds
    until     INTEGER NOT NULL, -- Unix milliseconds
    PRIMARY KEY (domain, code)
) WITHOUT ROWID, STRICT;
CREATE INDEX reservations_by_workspace ON reservations (workspace, until);
CREATE INDEX reservations_by_end ON reservations (until);
