-- +goose Up

-- Names of workspaces as small numbers: each link names its own in three B-trees.
CREATE TABLE workspaces (
    n    INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- One row per link, tombstones included. The row number is the storage order:
-- * a minted code lies at (length - 4) << 60 | id, where id is what the permutation
--   made the code from, so that creates append and a look-up needs no other index;
-- * every other code counts up from the lowest integer and is found through aliases.
-- Times are Unix milliseconds, 0 = none. Numbers that are unsigned in Go are stored
-- with the same 64 bits.
CREATE TABLE links (
    n             INTEGER PRIMARY KEY,
    workspace     INTEGER NOT NULL,
    id            BLOB    NOT NULL, -- UUIDv7
    domain        TEXT    NOT NULL, -- '' = the default domain
    code          TEXT    NOT NULL,
    minted        INTEGER NOT NULL,
    destination   TEXT    NOT NULL,
    digest        INTEGER NOT NULL, -- first 8 bytes of SHA-256 of destination
    status        INTEGER NOT NULL,
    safety        INTEGER NOT NULL,
    redirect      INTEGER NOT NULL,
    starts        INTEGER NOT NULL,
    expires       INTEGER NOT NULL,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    max_clicks    INTEGER NOT NULL,
    spent         INTEGER NOT NULL,
    fallback      TEXT    NOT NULL,
    forward_query INTEGER NOT NULL,
    no_index      INTEGER NOT NULL,
    cacheable     INTEGER NOT NULL,
    created_by    TEXT    NOT NULL,
    title         TEXT    NOT NULL,
    tags          TEXT    NOT NULL, -- netstrings: 3:foo2:ab
    version       INTEGER NOT NULL,
    checksum      INTEGER NOT NULL  -- CRC-32C of the key and of what a redirect uses but spent
) STRICT;

-- Idempotency of Create by id, and the order of List: ids begin with their time.
CREATE UNIQUE INDEX links_by_age ON links (workspace, id);

-- Dedupe: the oldest link of a workspace to a destination. The only index whose
-- inserts are scattered.
CREATE INDEX links_by_destination ON links (workspace, digest, id) WHERE status = 1 AND safety = 1;

-- The cursor of the sweeper.
CREATE INDEX links_by_expiry ON links (expires, domain, code) WHERE expires <> 0 AND status = 1;

-- Codes that do not lie at their permuted place.
CREATE TABLE aliases (
    domain TEXT    NOT NULL,
    code   TEXT    NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (domain, code)
) WITHOUT ROWID, STRICT;

-- The change log. Its newest row is never deleted, so that seq never repeats.
CREATE TABLE changes (
    seq     INTEGER PRIMARY KEY,
    domain  TEXT    NOT NULL,
    code    TEXT    NOT NULL,
    version INTEGER NOT NULL
) STRICT;

-- Counters of leased ids: everything below next belongs to somebody.
CREATE TABLE leases (
    counter TEXT    PRIMARY KEY,
    next    INTEGER NOT NULL
) WITHOUT ROWID, STRICT;

-- Keys of visitor tags by day (days since 1970-01-01 UTC).
CREATE TABLE day_keys (
    day INTEGER PRIMARY KEY,
    key BLOB    NOT NULL
) STRICT;

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID, STRICT;
