-- +goose Up

-- What has been counted: all clicks before this place of the click log. One row.
CREATE TABLE state (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    generation INTEGER NOT NULL, -- how many batches were applied
    segment    INTEGER NOT NULL,
    place      INTEGER NOT NULL
) STRICT;

INSERT INTO state (one, generation, segment, place) VALUES (1, 0, 0, 0);

-- One row per link that was ever clicked, with the sums of its whole life. The row
-- with the empty code is the orphans: requests for codes that no link has.
CREATE TABLE links (
    n            INTEGER PRIMARY KEY,
    domain       TEXT    NOT NULL, -- '' = the default domain
    code         TEXT    NOT NULL,
    clicks       INTEGER NOT NULL,
    humans       INTEGER NOT NULL,
    previews     INTEGER NOT NULL,
    fallbacks    INTEGER NOT NULL,
    refused      INTEGER NOT NULL,
    first_seen   INTEGER NOT NULL, -- Unix milliseconds of the first request of any kind
    last_clicked INTEGER NOT NULL, -- Unix milliseconds; 0 = never
    UNIQUE (domain, code)
) STRICT;

-- One row per link, granularity and bucket. The row number is
--     days since 1970 << 47 | links.n << 7 | slot
-- where slot 0 is the day and 1 to 96 are its quarter hours: a batch writes to the
-- newest end of the table only, and a link's day is read from one or two pages.
-- The packed columns are described in package clicks; NULL = nothing.
CREATE TABLE rollups (
    id         INTEGER PRIMARY KEY,
    clicks     INTEGER NOT NULL,
    humans     INTEGER NOT NULL,
    previews   INTEGER NOT NULL,
    fallbacks  INTEGER NOT NULL,
    refused    INTEGER NOT NULL,
    minutes    BLOB,
    dimensions BLOB,
    visitors   BLOB
) STRICT;
