package kafka

import (
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// deadTopic is where records go that nobody can read.
func (c Config) deadTopic() string { return c.Topic + ".dead" }

// Bury writes records that cannot be read to the topic beside, as they are, each with where
// it stood and why it is there. nil means that they are there for good; a record that is
// buried twice stands there twice.
func (g *Group) Bury(ctx context.Context, records []*kgo.Record, reasons []error) error {
	letters := make([]*kgo.Record, len(records))
	for i, r := range records {
		letters[i] = &kgo.Record{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp, Headers: []kgo.RecordHeader{
			{Key: "reason", Value: []byte(reasons[i].Error())},
			{Key: "topic", Value: []byte(r.Topic)},
			{Key: "partition", Value: strconv.AppendInt(nil, int64(r.Partition), 10)},
			{Key: "offset", Value: strconv.AppendInt(nil, r.Offset, 10)},
		}}
	}
	if err := g.dead.ProduceSync(ctx, letters...).FirstErr(); err != nil {
		return fmt.Errorf("kafka: dead letters: %w", err)
	}
	return nil
}
