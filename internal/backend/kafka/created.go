package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"

	"curt/internal/link"
)

// The numbers of api/links.proto, for good.
const (
	createdID          protowire.Number = 1
	createdDomain      protowire.Number = 2
	createdCode        protowire.Number = 3
	createdDestination protowire.Number = 4
	createdWorkspace   protowire.Number = 5
	createdBy          protowire.Number = 6
	createdTime        protowire.Number = 7
	createdDeleted     protowire.Number = 8
)

// createdBound is how long a batch of created links may take to be acknowledged.
const createdBound = 10 * time.Second

// Created returns where the created links go of which the clicks go to the topic of c. The name
// contains that of the clicks, so that installations that share brokers do not share a topic.
func (c Config) Created() Config {
	c.Topic += ".links.created"
	return c
}

// MigrateCreated creates the topic of created links unless it exists. One partition keeps the order
// of all; it carries more than the 10,000 creates a second that an installation is built for. An
// existing topic stays as it is.
func MigrateCreated(ctx context.Context, c Config, retention time.Duration) (made bool, err error) {
	c = c.Created()
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		return false, fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	made, err = c.ensure(ctx, kadm.NewClient(client), Topic{Partitions: 1, Retention: retention})
	if err != nil && !errors.Is(err, ErrTopic) {
		return false, fmt.Errorf("kafka: topic %s: %w", c.Topic, err)
	}
	return made, nil
}

// CreatedLinks writes created links to their topic. It connects at the first Send. Its methods are
// for one goroutine at a time.
type CreatedLinks struct {
	cfg    Config      // of their topic
	client *kgo.Client // nil = none is open
}

// NewCreatedLinks returns a writer to the topic of created links beside the clicks of c. Close
// releases it.
func NewCreatedLinks(c Config) *CreatedLinks { return &CreatedLinks{cfg: c.Created()} }

// Close closes the connections.
func (w *CreatedLinks) Close() {
	if w.client != nil {
		w.client.Close()
		w.client = nil
	}
}

// Send writes a record for each link, in order, and returns nil when all in-sync replicas have them.
// After an error any of them may be there. The next call then begins with another client, which
// also finds a topic that was created again.
func (w *CreatedLinks) Send(ctx context.Context, links []link.Link) (err error) {
	if w.client == nil {
		if w.client, err = w.cfg.producing(kgo.ProducerLinger(0)); err != nil {
			return err
		}
	}
	within, cancel := context.WithTimeout(ctx, createdBound)
	defer cancel()
	acknowledged := make(chan error, len(links))
	for i := range links {
		r := kgo.KeySliceRecord([]byte(links[i].ID.String()), appendCreated(nil, &links[i]))
		w.client.Produce(within, r, func(_ *kgo.Record, err error) { acknowledged <- err })
	}
	for range links {
		select {
		case err = <-acknowledged:
		case <-within.Done():
			err = fmt.Errorf("%w: %w", ErrSilent, context.Cause(within))
		}
		if err != nil {
			w.Close()
			return fmt.Errorf("kafka: send created links to %s: %w", w.cfg.Topic, err)
		}
	}
	return nil
}

// appendCreated appends the Created of a link.
func appendCreated(b []byte, l *link.Link) []byte {
	b = appendName(b, createdID, l.ID.String())
	b = appendName(appendName(b, createdDomain, string(l.Key.Domain)), createdCode, string(l.Key.Code))
	b = appendName(appendName(b, createdDestination, l.Destination), createdWorkspace, string(l.Workspace))
	b = appendName(b, createdBy, l.CreatedBy)
	if !l.Created.IsZero() {
		b = appendVarint(b, createdTime, uint64(l.Created.UnixMilli()))
	}
	if l.Status == link.Deleted {
		b = appendVarint(b, createdDeleted, 1)
	}
	return b
}
