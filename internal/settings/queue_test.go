package settings_test

import (
	"strings"
	"testing"

	"curt/internal/config"
	"curt/internal/settings"
)

func TestQueuedLinksHaveATopicOfTheirOwn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		events, writes string
		topic, wrong   string
	}{
		"no topic":              {writes: "kafka://a", topic: "curt.links.queued"},
		"a topic":               {writes: "kafka://a/queue", topic: "queue"},
		"beside clicks":         {events: "kafka://a/clicks", topic: "clicks.links.queued"},
		"no topic, beside some": {events: "kafka://a", writes: "kafka://a", topic: "curt.links.queued"},
		"that of clicks":        {events: "kafka://a,b/q8", writes: "kafka://b:9092/q8", wrong: "expected another topic than q8"},
		"that of dead letters":  {events: "kafka://a/q8", writes: "kafka://a/q8.dead", wrong: "expected another topic"},
		"that of created links": {events: "kafka://a/q8", writes: "kafka://a/q8.links.created", wrong: "expected another topic"},
		"in another Kafka":      {events: "kafka://a/q8", writes: "kafka://b/q8", topic: "q8"},
	} {
		got, err := settings.Queue(config.Config{Events: tt.events, WritesKafka: tt.writes, Writes: "queued"})
		if tt.wrong == "" && (err != nil || got.Topic != tt.topic) {
			t.Errorf("%s: %s, %v, want %s", name, got.Topic, err, tt.topic)
		}
		if tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(err.Error(), "CURT_WRITES_KAFKA") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %s", name, err, tt.wrong)
		}
	}
}
