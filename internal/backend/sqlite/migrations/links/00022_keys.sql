-- +goose Up

-- Keys that were generated ahead (CURT_CODES=pool), in batches: the codes, separated by spaces, and a checksum. Batches
-- are taken in their order.
CREATE TABLE unused_keys (
    batch INTEGER PRIMARY KEY,
    pool  TEXT    NOT NULL,
    size  INTEGER NOT NULL,
    keys  TEXT    NOT NULL
) STRICT;
CREATE INDEX unused_keys_of ON unused_keys (pool);

-- Batches that a server has taken into memory. Once all keys of one are links, keys is empty.
CREATE TABLE used_keys (
    batch  INTEGER PRIMARY KEY,
    pool   TEXT    NOT NULL,
    holder TEXT    NOT NULL,
    size   INTEGER NOT NULL, -- without keys that were put back
    leaked INTEGER NOT NULL, -- keys that no link will have
    held   INTEGER NOT NULL, -- 1 = some keys may be unused, in the memory of the holder
    taken  INTEGER NOT NULL, -- Unix milliseconds
    seen   INTEGER NOT NULL, -- when the holder was alive, Unix milliseconds
    keys   TEXT    NOT NULL
) STRICT;
CREATE INDEX used_keys_by_holder ON used_keys (holder) WHERE held = 1;
CREATE INDEX used_keys_by_sight ON used_keys (seen) WHERE held = 1;
CREATE INDEX used_keys_leaked ON used_keys (pool) WHERE leaked > 0;
CREATE INDEX used_keys_by_time ON used_keys (pool, taken);
