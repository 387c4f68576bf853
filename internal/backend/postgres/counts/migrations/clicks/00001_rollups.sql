-- +goose Up

-- What each server has counted: all clicks before this place of its click log. Its batches
-- move it in the transaction that counts, so that each click counts once.
CREATE TABLE click_writers (
    instance   text        PRIMARY KEY,
    generation bigint      NOT NULL, -- how many batches it applied
    segment    bigint      NOT NULL,
    place      bigint      NOT NULL,
    complete   bigint      NOT NULL, -- Unix milliseconds: every click that it kept before is counted here; 0 = not known
    seen       timestamptz NOT NULL  -- when it wrote last
) WITH (fillfactor = 50);

-- One row per link that was ever clicked, with the sums of its whole life. The row with the
-- empty code is the orphans. A batch locks the rows of its links, and with them their rows
-- of rollups.
CREATE TABLE click_totals (
    n            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    domain       text   COLLATE "C" NOT NULL,
    code         text   COLLATE "C" NOT NULL,
    clicks       bigint NOT NULL,
    humans       bigint NOT NULL,
    previews     bigint NOT NULL,
    fallbacks    bigint NOT NULL,
    refused      bigint NOT NULL,
    first_seen   bigint NOT NULL, -- Unix milliseconds of the first request of any kind
    last_clicked bigint NOT NULL, -- Unix milliseconds; 0 = never
    UNIQUE (domain, code)
) WITH (fillfactor = 80);

-- One row per link, granularity and bucket; package clicks says what id is and what the
-- packed columns hold. NULL = nothing.
CREATE TABLE click_rollups (
    id         bigint PRIMARY KEY,
    clicks     bigint NOT NULL,
    humans     bigint NOT NULL,
    previews   bigint NOT NULL,
    fallbacks  bigint NOT NULL,
    refused    bigint NOT NULL,
    minutes    bytea,
    dimensions bytea,
    visitors   bytea
) WITH (fillfactor = 80);
