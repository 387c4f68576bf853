-- The journal of reconciliations: what a comparison of an hour with Kafka and with its sums found,
-- and what was done. rows and hash identify the clicks that were compared.
CREATE TABLE IF NOT EXISTS reconciliations (
    hour    DateTime('UTC'),
    at      DateTime64(3, 'UTC'),
    rows    UInt64,
    hash    UInt64,
    kafka   UInt64,
    missing UInt64,
    surplus UInt64,
    off     Bool,
    attempt UInt8,
    outcome LowCardinality(String),
    reason  String
) ENGINE = MergeTree
ORDER BY (hour, at)
TTL toDateTime(at) + toIntervalDay(90);
