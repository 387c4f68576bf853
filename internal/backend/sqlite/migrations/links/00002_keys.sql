-- +goose Up

-- What a workspace may do (package auth). Rows were made with the first link or key
-- of their name; the two that every installation has are there from now on.
ALTER TABLE workspaces ADD COLUMN plan TEXT NOT NULL DEFAULT 'registered';

INSERT INTO workspaces (name, plan) VALUES ('default', 'default'), ('anonymous', 'anonymous')
    ON CONFLICT (name) DO UPDATE SET plan = excluded.plan;

-- One row per API key. Times are Unix milliseconds, 0 = none.
CREATE TABLE keys (
    id         BLOB    PRIMARY KEY, -- UUIDv7
    workspace  INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    scopes     TEXT    NOT NULL, -- separated by spaces
    created    INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    expires    INTEGER NOT NULL,
    used       INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

CREATE INDEX keys_by_workspace ON keys (workspace, id);

-- The secrets of a key: the current one, and after a rotation the one before.
CREATE TABLE key_secrets (
    sum   BLOB    PRIMARY KEY, -- SHA-256
    key   BLOB    NOT NULL,
    until INTEGER NOT NULL -- Unix milliseconds; 0 = current
) WITHOUT ROWID, STRICT;

CREATE INDEX key_secrets_by_key ON key_secrets (key);
