-- +goose Up

-- One row per link, tombstones included.
--
-- place says where a code lies: a code of the shape that the permutation makes lies at
-- (length - 4) << 60 | id, where id is what the permutation makes it from, whoever chose
-- the code; every other code at -1. So the primary key is unique for (domain, code), as
-- one code has one place, and the codes that we make are appended to it.
--
-- Times are Unix milliseconds, 0 = none. Numbers that are unsigned in Go are stored with
-- the same 64 bits. Texts that keys or orders are made of compare byte by byte.
CREATE TABLE links (
    place         bigint   NOT NULL,
    domain        text     COLLATE "C" NOT NULL, -- '' = the default domain
    code          text     COLLATE "C" NOT NULL,
    id            uuid     NOT NULL, -- version 7
    workspace     text     COLLATE "C" NOT NULL,
    minted        boolean  NOT NULL,
    destination   text     NOT NULL,
    digest        bigint   NOT NULL, -- first 8 bytes of SHA-256 of destination
    status        smallint NOT NULL,
    safety        smallint NOT NULL,
    redirect      smallint NOT NULL,
    starts        bigint   NOT NULL,
    expires       bigint   NOT NULL,
    created       bigint   NOT NULL,
    updated       bigint   NOT NULL,
    max_clicks    bigint   NOT NULL,
    spent         bigint   NOT NULL,
    fallback      text     NOT NULL,
    forward_query boolean  NOT NULL,
    no_index      boolean  NOT NULL,
    cacheable     boolean  NOT NULL,
    created_by    text     NOT NULL,
    title         text     NOT NULL,
    tags          text[]   NOT NULL,
    version       bigint   NOT NULL,
    PRIMARY KEY (place, domain, code)
);

-- Create is idempotent by id; the order of List over all workspaces. IDs begin with
-- their time, so that both of these are appended to.
CREATE UNIQUE INDEX links_by_age ON links (id, workspace);
CREATE INDEX links_by_workspace ON links (workspace, id);

-- Dedupe: links that answer visitors alike. The only index with scattered inserts.
CREATE INDEX links_by_twins ON links (workspace, digest, expires, id)
    WHERE status = 1 AND safety = 1 AND max_clicks = 0;

-- The cursor of the sweeper, and what the filter of codes is filled from.
CREATE INDEX links_by_expiry ON links (expires, domain, code) WHERE expires <> 0 AND status = 1;
CREATE INDEX links_unminted ON links (place, domain, code) WHERE NOT minted;

-- The change log. Its numbers come from the one row of change_head, which a writer holds
-- until its commit: so they have no gap, and one is visible only when all lower ones are.
-- A sequence of PostgreSQL's own would give them out before the commit.
CREATE TABLE changes (
    seq     bigint PRIMARY KEY,
    domain  text   NOT NULL,
    code    text   NOT NULL,
    version bigint NOT NULL
);

CREATE TABLE change_head (
    n   smallint PRIMARY KEY CHECK (n = 1),
    seq bigint   NOT NULL
);

INSERT INTO change_head (n, seq) VALUES (1, 0);

-- Counters of leased ids: everything below next belongs to somebody.
CREATE TABLE leases (
    counter text   PRIMARY KEY,
    next    bigint NOT NULL
);

-- Keys of visitor tags by day (days since 1970-01-01 UTC).
CREATE TABLE day_keys (
    day bigint PRIMARY KEY,
    key bytea  NOT NULL
);

CREATE TABLE settings (
    name  text  PRIMARY KEY,
    value bytea NOT NULL
);

-- Who uses the database now, until when unless they say so again.
CREATE TABLE holder (
    n     smallint    PRIMARY KEY CHECK (n = 1),
    name  text        NOT NULL,
    until timestamptz NOT NULL
);
