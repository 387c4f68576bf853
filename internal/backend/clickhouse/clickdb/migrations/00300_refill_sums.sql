-- Sums of another replica, of days whose clicks are no longer kept one by one, while a refill
-- brings its own to the same. A batch is one attempt.
CREATE TABLE IF NOT EXISTS refill_sums (
    batch        String,
    target       LowCardinality(String),
    domain       String,
    code         String,
    at           DateTime('UTC'),
    clicks       Int64,
    humans       Int64,
    previews     Int64,
    fallbacks    Int64,
    refused      Int64,
    first_seen   DateTime64(3, 'UTC'),
    last_clicked DateTime64(3, 'UTC'),
    visitors     String,
    written      DateTime('UTC') DEFAULT now()
) ENGINE = MergeTree
PARTITION BY toYYYYMMDD(written)
ORDER BY (batch, target, at, domain, code)
TTL written + toIntervalDay(1);
