-- +goose Up

-- Keys that were generated ahead (CURT_CODES=pool), in batches: the codes, separated by spaces, and a checksum. Batches
-- are taken in their order. A restore of the database raises the epoch, which is in leases: unused keys of a lower one may
-- have been used since the backup, and are not taken.
CREATE TABLE unused_keys (
    batch bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    epoch bigint  NOT NULL,
    pool  text    COLLATE "C" NOT NULL,
    size  integer NOT NULL,
    keys  text    NOT NULL
);
CREATE INDEX unused_keys_of ON unused_keys (epoch, pool, batch);

-- Batches that a server has taken into memory. Once all keys of one are links, keys is empty.
CREATE TABLE used_keys (
    batch  bigint  PRIMARY KEY,
    pool   text    COLLATE "C" NOT NULL,
    holder text    COLLATE "C" NOT NULL,
    size   integer NOT NULL, -- without keys that were put back
    leaked integer NOT NULL, -- keys that no link will have
    held   boolean NOT NULL, -- some keys may be unused, in the memory of the holder
    taken  bigint  NOT NULL, -- Unix milliseconds by this database's clock
    seen   bigint  NOT NULL, -- when the holder was alive, Unix milliseconds by this database's clock
    keys   text    NOT NULL
);
CREATE INDEX used_keys_by_holder ON used_keys (holder) WHERE held;
CREATE INDEX used_keys_by_sight ON used_keys (seen) WHERE held;
CREATE INDEX used_keys_leaked ON used_keys (pool) WHERE leaked > 0;
CREATE INDEX used_keys_by_time ON used_keys (pool, taken);
