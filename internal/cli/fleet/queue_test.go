package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/kafka"
)

// The queue has a line: whether it is reachable, its topic, how many links wait, and who reads it.
func TestTheQueueHasALine(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	c := Status{}
	c.Writes, c.WritesRate, c.WritesLoss = "queued", 200, true
	c.WritesKafka = "kafka://" + strings.Join(cluster.ListenAddrs(), ",") + "/links"
	line := func() part {
		t.Helper()
		all := intime(func() []part { return c.queue(t.Context()) })
		if len(all) != 1 {
			t.Fatalf("%+v", all)
		}
		return all[0]
	}
	if p := line(); p.State != failure || !strings.Contains(joined(p.Wrong), "topic links is missing; run curt migrate") {
		t.Errorf("without a topic: %+v", p)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(t.Context(), 12, 3, nil, "links"); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "links", Key: []byte(fmt.Sprint(i)), Value: []byte("{}")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if p := line(); p.State != failure || p.Lag != "30 links" || p.Role != "queue links, 12 partitions" || joined(p.Wrong) != "no writer reads the topic" {
		t.Errorf("without a writer: %+v", p)
	}
	parsed, err := kafka.Parse(c.WritesKafka)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := kgo.NewClient(kgo.SeedBrokers(parsed.Brokers...), kgo.ConsumerGroup("links"), kgo.ConsumeTopics("links"), kgo.DisableAutoCommit())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(writer.Close)
	for read := 0; read < 30; {
		read += writer.PollFetches(t.Context()).NumRecords()
	}
	if p := line(); p.State != ok || p.Lag != "30 links" {
		t.Errorf("with a writer: %+v", p)
	}
	if err := writer.CommitUncommittedOffsets(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := line(); p.State != ok || p.Lag != "0 links" {
		t.Errorf("after they are written: %+v", p)
	}
	c.WritesLoss = false
	if p := line(); p.State != failure || !strings.Contains(joined(p.Wrong), "min.insync.replicas") {
		t.Errorf("where a disk that fails loses links: %+v", p)
	}
	c.WritesKafka = "kafka://127.0.0.1:1/links"
	if p := line(); p.State != failure || p.Role != "queue links" || p.Address != "127.0.0.1:1" || len(p.Wrong) == 0 {
		t.Errorf("unreachable: %+v", p)
	}
	c.Writes, c.WritesKafka = "sync", ""
	if all := c.queue(t.Context()); all != nil {
		t.Errorf("without a queue: %+v", all)
	}
}
