-- Clicks one by one. Links lie together and in the order of time, which is how they are
-- asked for, and what makes them small. A day is a partition: what is no longer kept goes
-- as a whole.
CREATE TABLE IF NOT EXISTS clicks (
    domain        LowCardinality(String),
    code          String CODEC(ZSTD(3)),
    time          DateTime64(3, 'UTC') CODEC(Delta, ZSTD(3)),
    workspace     LowCardinality(String) CODEC(ZSTD(3)),
    instance      UInt64 CODEC(ZSTD(3)),
    sequence      UInt64 CODEC(Delta, ZSTD(3)),
    outcome       UInt8 CODEC(ZSTD(3)),
    preview       Bool CODEC(ZSTD(3)),
    bot           Bool CODEC(ZSTD(3)),
    bot_reason    LowCardinality(String) CODEC(ZSTD(3)),
    bot_name      LowCardinality(String) CODEC(ZSTD(3)),
    visitor       UInt64 CODEC(ZSTD(3)),
    country       LowCardinality(String) CODEC(ZSTD(3)),
    city          LowCardinality(String) CODEC(ZSTD(3)),
    network       LowCardinality(String) CODEC(ZSTD(3)),
    referrer_host LowCardinality(String) CODEC(ZSTD(3)),
    device        LowCardinality(String) CODEC(ZSTD(3)),
    browser       LowCardinality(String) CODEC(ZSTD(3)),
    os            LowCardinality(String) CODEC(ZSTD(3)),
    language      LowCardinality(String) CODEC(ZSTD(3)),
    trigger       LowCardinality(String) CODEC(ZSTD(3)),
    utm_source    LowCardinality(String) CODEC(ZSTD(3)),
    utm_medium    LowCardinality(String) CODEC(ZSTD(3)),
    utm_campaign  LowCardinality(String) CODEC(ZSTD(3)),
    utm_term      LowCardinality(String) CODEC(ZSTD(3)),
    utm_content   LowCardinality(String) CODEC(ZSTD(3)),
    keep_days     UInt16 CODEC(ZSTD(3)),
    INDEX by_workspace workspace TYPE set(64) GRANULARITY 1
) ENGINE = MergeTree
PARTITION BY toYYYYMMDD(time)
ORDER BY (domain, code, time)
TTL toDateTime(time) + toIntervalDay(keep_days)
SETTINGS {{window}};

-- Counts by link and by workspace, of each minute, quarter hour and UTC day. Sums are
-- signed, so that a correction is a row like any other. A granule of quarter hours or days, which
-- is read as a whole, has at most 1 MiB: some 80 states of links with many visitors.
{{range counts}}
CREATE TABLE IF NOT EXISTS {{.Table}} (
    domain       LowCardinality(String),
    code         String CODEC(ZSTD(1)),
    at           DateTime('UTC') CODEC(Delta, ZSTD(1)),
    clicks       SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    humans       SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    previews     SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    fallbacks    SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    refused      SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    first_seen   SimpleAggregateFunction(min, DateTime64(3, 'UTC')) CODEC(Delta, ZSTD(1)),
    last_clicked SimpleAggregateFunction(max, DateTime64(3, 'UTC')) CODEC(Delta, ZSTD(1)),
    visitors     AggregateFunction(uniqCombined64If(14), UInt64, UInt8) CODEC(ZSTD(1))
) ENGINE = AggregatingMergeTree
PARTITION BY {{.Partition}}
ORDER BY (domain, code, at){{with .TTL}}
TTL {{.}}{{end}}
SETTINGS {{window}}{{if not .TTL}}, index_granularity_bytes = 1048576{{end}};

CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Table}}_view TO {{.Table}} AS
{{select .Table}};
{{end}}
-- How often each value of a dimension came on a UTC day, by link and by workspace. A day is
-- added up as a whole, once it is over, under a version that settled names: rows of others
-- are of nobody. The dimension 255 has no value: its clicks are how many visitors there were.
CREATE TABLE IF NOT EXISTS day_values (
    domain    LowCardinality(String),
    code      String CODEC(ZSTD(1)),
    dimension UInt8,
    at        DateTime('UTC') CODEC(Delta, ZSTD(1)),
    value     String CODEC(ZSTD(1)),
    clicks    UInt64 CODEC(T64, ZSTD(1)),
    humans    UInt64 CODEC(T64, ZSTD(1)),
    version   UInt64 CODEC(ZSTD(1))
) ENGINE = MergeTree
PARTITION BY toYear(at)
ORDER BY (domain, code, dimension, at, value);

-- Which days those are, and of how many rows of clicks. The newest of a day counts.
CREATE TABLE IF NOT EXISTS settled (
    at      DateTime('UTC'),
    version UInt64,
    clicks  UInt64
) ENGINE = MergeTree
ORDER BY (at, version);
