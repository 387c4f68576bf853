-- +goose Up

-- What the share links of a link are signed with. Dropping the row ends them all.
CREATE TABLE shares (
    domain    TEXT NOT NULL,
    code      TEXT NOT NULL,
    workspace TEXT NOT NULL, -- the link's
    secret    BLOB NOT NULL, -- 32 random bytes
    PRIMARY KEY (domain, code)
) WITHOUT ROWID, STRICT;
