-- +goose Up

-- What a workspace may do (package auth). One that links name and that is not here has
-- the plan of a new one.
CREATE TABLE workspaces (
    name text COLLATE "C" PRIMARY KEY,
    plan text NOT NULL
);

INSERT INTO workspaces (name, plan) VALUES ('default', 'default'), ('anonymous', 'anonymous');

-- One row per API key. Times are Unix milliseconds, 0 = none, as everywhere below.
CREATE TABLE keys (
    id         uuid   PRIMARY KEY, -- version 7
    workspace  text   COLLATE "C" NOT NULL REFERENCES workspaces (name),
    name       bytea  NOT NULL, -- any text, also one with NUL
    scopes     text[] NOT NULL,
    created    bigint NOT NULL,
    created_by text   NOT NULL,
    expires    bigint NOT NULL,
    used       bigint NOT NULL
);

CREATE INDEX keys_by_workspace ON keys (workspace, id);

-- The secrets of a key: the current one, and after a rotation the one before.
CREATE TABLE key_secrets (
    sum   bytea  PRIMARY KEY, -- SHA-256
    key   uuid   NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    until bigint NOT NULL -- 0 = current
);

CREATE INDEX key_secrets_by_key ON key_secrets (key);

-- What the share links of a link are signed with. Dropping the row ends them all.
CREATE TABLE shares (
    domain    text  NOT NULL,
    code      text  NOT NULL,
    workspace text  NOT NULL, -- the link's
    secret    bytea NOT NULL, -- 32 random bytes
    PRIMARY KEY (domain, code)
);

-- What the idempotency keys of callers stand for, for a day.
CREATE TABLE idempotency (
    caller  text    NOT NULL, -- id of the API key
    name    bytea   NOT NULL, -- the caller's Idempotency-Key, whatever bytes it has
    request bytea   NOT NULL, -- SHA-256 of the request
    id      uuid    NOT NULL, -- of the link
    domain  text    NOT NULL,
    code    text    NOT NULL,
    minted  boolean NOT NULL,
    found   boolean NOT NULL,
    created bigint  NOT NULL,
    PRIMARY KEY (caller, name)
);

-- The sweeper.
CREATE INDEX idempotency_by_age ON idempotency (created);
