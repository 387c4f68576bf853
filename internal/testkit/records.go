package testkit

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// DeleteRecords has Kafka give up records, as its retention does: of each partition of a topic those before
// the offset that before returns for it and its end.
func DeleteRecords(t testing.TB, brokers []string, topic string, before func(partition int32, end int64) int64) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var from kadm.Offsets
	ends.Each(func(o kadm.ListedOffset) { from.AddOffset(o.Topic, o.Partition, before(o.Partition, o.Offset), -1) })
	answer, err := admin.DeleteRecords(t.Context(), from)
	if err == nil {
		err = answer.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Half is the offset in the middle, for [DeleteRecords].
func Half(_ int32, end int64) int64 { return end / 2 }

// All is the end, for [DeleteRecords].
func All(_ int32, end int64) int64 { return end }
