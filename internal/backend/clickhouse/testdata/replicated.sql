-- Clicks one by one. Links lie together and in the order of time, which is how they are
-- asked for, and what makes them small. A day is a partition: what is no longer kept goes
-- as a whole.
CREATE TABLE IF NOT EXISTS clicks ON CLUSTER `main` (
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
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')
PARTITION BY toYYYYMMDD(time)
ORDER BY (domain, code, time)
TTL toDateTime(time) + toIntervalDay(keep_days)
SETTINGS replicated_deduplication_window = 50000;

-- Counts by link and by workspace, of each minute, quarter hour and UTC day. Sums are
-- signed, so that a correction is a row like any other. A granule of quarter hours or days, which
-- is read as a whole, has at most 1 MiB: some 80 states of links with many visitors.

CREATE TABLE IF NOT EXISTS minutes ON CLUSTER `main` (
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
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')
PARTITION BY toYYYYMMDD(at)
ORDER BY (domain, code, at)
TTL at + toIntervalDay(3)
SETTINGS replicated_deduplication_window = 50000;

CREATE MATERIALIZED VIEW IF NOT EXISTS minutes_view ON CLUSTER `main` TO minutes AS
SELECT key.1 AS domain, key.2 AS code, at,
    toInt64(countIf(counted)) AS clicks,
    toInt64(countIf(counted AND NOT bot)) AS humans,
    toInt64(countIf(preview AND outcome IN (1, 4))) AS previews,
    toInt64(countIf(NOT preview AND outcome = 2)) AS fallbacks,
    toInt64(countIf(NOT preview AND outcome = 3)) AS refused,
    min(time) AS first_seen,
    max(if(counted, time, toDateTime64(0, 3, 'UTC'))) AS last_clicked,
    uniqCombined64IfState(14)(visitor, toUInt8(counted AND outcome = 1 AND NOT bot AND visitor != 0)) AS visitors
FROM (
    SELECT arrayJoin(if(workspace = '', [(CAST(domain, 'String'), code)], [(CAST(domain, 'String'), code), ('*', CAST(workspace, 'String'))])) AS key, toDateTime(toStartOfMinute(time, 'UTC'), 'UTC') AS at, time, outcome, preview, bot, visitor,
        NOT preview AND outcome IN (1, 4) AS counted
    FROM clicks
)
GROUP BY domain, code, at;

CREATE TABLE IF NOT EXISTS quarters ON CLUSTER `main` (
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
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')
PARTITION BY toYYYYMM(at)
ORDER BY (domain, code, at)
SETTINGS replicated_deduplication_window = 50000, index_granularity_bytes = 1048576;

CREATE MATERIALIZED VIEW IF NOT EXISTS quarters_view ON CLUSTER `main` TO quarters AS
SELECT key.1 AS domain, key.2 AS code, at,
    toInt64(countIf(counted)) AS clicks,
    toInt64(countIf(counted AND NOT bot)) AS humans,
    toInt64(countIf(preview AND outcome IN (1, 4))) AS previews,
    toInt64(countIf(NOT preview AND outcome = 2)) AS fallbacks,
    toInt64(countIf(NOT preview AND outcome = 3)) AS refused,
    min(time) AS first_seen,
    max(if(counted, time, toDateTime64(0, 3, 'UTC'))) AS last_clicked,
    uniqCombined64IfState(14)(visitor, toUInt8(counted AND outcome = 1 AND NOT bot AND visitor != 0)) AS visitors
FROM (
    SELECT arrayJoin(if(workspace = '', [(CAST(domain, 'String'), code)], [(CAST(domain, 'String'), code), ('*', CAST(workspace, 'String'))])) AS key, toDateTime(toStartOfFifteenMinutes(time, 'UTC'), 'UTC') AS at, time, outcome, preview, bot, visitor,
        NOT preview AND outcome IN (1, 4) AS counted
    FROM clicks
)
GROUP BY domain, code, at;

CREATE TABLE IF NOT EXISTS days ON CLUSTER `main` (
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
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')
PARTITION BY toYear(at)
ORDER BY (domain, code, at)
SETTINGS replicated_deduplication_window = 50000, index_granularity_bytes = 1048576;

CREATE MATERIALIZED VIEW IF NOT EXISTS days_view ON CLUSTER `main` TO days AS
SELECT key.1 AS domain, key.2 AS code, at,
    toInt64(countIf(counted)) AS clicks,
    toInt64(countIf(counted AND NOT bot)) AS humans,
    toInt64(countIf(preview AND outcome IN (1, 4))) AS previews,
    toInt64(countIf(NOT preview AND outcome = 2)) AS fallbacks,
    toInt64(countIf(NOT preview AND outcome = 3)) AS refused,
    min(time) AS first_seen,
    max(if(counted, time, toDateTime64(0, 3, 'UTC'))) AS last_clicked,
    uniqCombined64IfState(14)(visitor, toUInt8(counted AND outcome = 1 AND NOT bot AND visitor != 0)) AS visitors
FROM (
    SELECT arrayJoin(if(workspace = '', [(CAST(domain, 'String'), code)], [(CAST(domain, 'String'), code), ('*', CAST(workspace, 'String'))])) AS key, toDateTime(toStartOfDay(time, 'UTC'), 'UTC') AS at, time, outcome, preview, bot, visitor,
        NOT preview AND outcome IN (1, 4) AS counted
    FROM clicks
)
GROUP BY domain, code, at;

-- How often each value of a dimension came on a UTC day, by link and by workspace. A day is
-- added up as a whole, once it is over, under a version that settled names: rows of others
-- are of nobody. The dimension 255 has no value: its clicks are how many visitors there were.
CREATE TABLE IF NOT EXISTS day_values ON CLUSTER `main` (
    domain    LowCardinality(String),
    code      String CODEC(ZSTD(1)),
    dimension UInt8,
    at        DateTime('UTC') CODEC(Delta, ZSTD(1)),
    value     String CODEC(ZSTD(1)),
    clicks    UInt64 CODEC(T64, ZSTD(1)),
    humans    UInt64 CODEC(T64, ZSTD(1)),
    version   UInt64 CODEC(ZSTD(1))
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')
PARTITION BY toYear(at)
ORDER BY (domain, code, dimension, at, value);

-- Which days those are, and of how many rows of clicks. The newest of a day counts.
CREATE TABLE IF NOT EXISTS settled ON CLUSTER `main` (
    at      DateTime('UTC'),
    version UInt64,
    clicks  UInt64
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}')
ORDER BY (at, version);
