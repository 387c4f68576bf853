// Package kafka brings clicks to Kafka: [Producer] is a ship.Sink, and [Migrate] makes its
// topic. The records are those of api/clicks.proto.
//
// The producer is idempotent and waits for all replicas that are in sync, so that within one
// life of a process each click is in Kafka once and in order; what a crash or a change of the
// topic makes come twice is told by instance and sequence. It keeps a bounded amount in memory:
// while Kafka is away the click log grows instead.
//
// [CreatedLinks] writes created links to a topic of their own, as records of api/links.proto.
//
// Read record.go for the format, then producer.go and topic.go.
package kafka
