package server

import (
	"context"
	"errors"
	"fmt"

	"curt/internal/backend/kafka"
	"curt/internal/config"
)

// events asks Kafka for the topic. Without it no server starts worse: clicks wait.
func (c *checker) events(ctx context.Context, cfg config.Config) {
	if cfg.Events == "" || c.told("CURT_EVENTS") {
		return
	}
	k, err := kafkaOf(cfg)
	if err != nil {
		return // which was said with the values
	}
	shown := "CURT_EVENTS=" + config.Redact(cfg.Events)
	partitions, err := kafka.Probe(ctx, k)
	switch {
	case errors.Is(err, kafka.ErrNoTopic):
		c.doubt(aboutSettings, shown, "Kafka answers, and has no topic "+k.Topic+" yet; curt migrate makes it")
	case err != nil:
		c.add("", &config.Error{Setting: "CURT_EVENTS", Value: config.Redact(cfg.Events), Want: oneLine{err}.Error()})
	default:
		c.add(fmt.Sprintf("%s: Kafka answers, the topic %s has %d partitions", shown, k.Topic, partitions), nil)
	}
}
