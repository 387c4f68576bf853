-- What is known of each instance in each partition of a topic, and, as the instance 0, of the
-- partition itself. What is older than what is there changes nothing, so that it needs neither
-- tokens nor order.
CREATE TABLE IF NOT EXISTS watermarks (
    topic      String,
    partition  UInt32,
    instance   UInt64,
    partitions SimpleAggregateFunction(max, UInt32),
    first      SimpleAggregateFunction(min, Int64),
    watermark  SimpleAggregateFunction(max, Int64),
    heard      SimpleAggregateFunction(max, Int64),
    at         SimpleAggregateFunction(max, DateTime('UTC'))
) ENGINE = AggregatingMergeTree
ORDER BY (topic, partition, instance)
TTL at + toIntervalDay(30);
