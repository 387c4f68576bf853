// Package events proves, on the built binary and the real services, that clicks which go
// through Kafka to ClickHouse count exactly once, whatever dies: workers that are killed or
// that sleep through their session, a broker, ClickHouse, servers that follow links. What is
// true is what the click logs hold. Meanwhile a day ends, clicks of other days come, a click log
// is sent twice, and what is said to be complete is held against what came later.
//
// TestAway takes Kafka and ClickHouse away under load, TestSoon says how soon a click is in the
// statistics (CURT_TEST_SPEED=1, scripts/bench-events). CURT_TEST_LONG=1 (make soak) has two
// million clicks, more deaths and longer outages.
package events
