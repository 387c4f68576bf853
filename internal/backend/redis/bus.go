package redis

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/redis/rueidis"

	"curt/internal/cache"
	"curt/internal/link"
)

// note is a cache.Note on the wire. Releases side by side understand each other: fields
// are added, never given another meaning.
type note struct {
	Head    uint64   `json:"head,omitempty"`  // of the first partition
	Heads   []uint64 `json:"heads,omitempty"` // of all, where there are more
	Changes []change `json:"changes,omitempty"`
	Try     bool     `json:"try,omitempty"` // nothing is meant by it: see Client.try
}

type change struct {
	Partition uint16 `json:"part,omitempty"`
	Sequence  uint64 `json:"seq,omitempty"`
	Domain    string `json:"domain,omitempty"`
	Code      string `json:"code"`
	Version   uint64 `json:"version"`
}

// maxNote bounds what is read of others: 256 changes of the longest keys are below 128 KiB.
const maxNote = 1 << 20

var errLost = errors.New("the subscription was lost")

func (p prefix) channel() string { return string(p) + "bus" }

// Publish implements cache.Bus. On a Cluster it is sharded Pub/Sub: one node takes it.
func (c *Client) Publish(ctx context.Context, n cache.Note) error {
	sent := note{Head: uint64(n.Head.At(0))}
	if len(n.Head) > 1 {
		for _, s := range n.Head {
			sent.Heads = append(sent.Heads, uint64(s))
		}
	}
	for _, ch := range n.Changes {
		sent.Changes = append(sent.Changes, change{ch.Partition, uint64(ch.Sequence), string(ch.Key.Domain), string(ch.Key.Code), uint64(ch.Version)})
	}
	text, err := json.Marshal(sent)
	if err != nil {
		return wrap("publish", err)
	}
	err = c.guarded(ctx, tellChanges, c.limits.publish, func(ctx context.Context, conn rueidis.Client) error {
		return c.publish(ctx, conn, rueidis.BinaryString(text))
	})
	return wrap("publish", err)
}

func (c *Client) publish(ctx context.Context, conn rueidis.Client, text string) error {
	if sharded(conn) {
		return conn.Do(ctx, conn.B().Spublish().Channel(c.keys.channel()).Message(text).Build()).Error()
	}
	return conn.Do(ctx, conn.B().Publish().Channel(c.keys.channel()).Message(text).Build()).Error()
}

// subscribe has a connection hear the channel.
func (c *Client) subscribe(ctx context.Context, conn rueidis.Client, own rueidis.DedicatedClient) error {
	if sharded(conn) {
		return own.Do(ctx, own.B().Ssubscribe().Channel(c.keys.channel()).Build()).Error()
	}
	return own.Do(ctx, own.B().Subscribe().Channel(c.keys.channel()).Build()).Error()
}

func sharded(conn rueidis.Client) bool { return conn.Mode() == rueidis.ClientModeCluster }

// Subscribe implements cache.Bus, on a connection of its own.
func (c *Client) Subscribe(ctx context.Context, begun func(), hear func(cache.Note)) error {
	conn, err := c.client()
	if err != nil {
		return err
	}
	own, release := conn.Dedicate()
	defer release()
	lost := own.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) {
			if n, ok := c.understand(m.Message); ok {
				hear(n)
			}
		},
		OnSubscription: func(s rueidis.PubSubSubscription) {
			if s.Kind == "subscribe" || s.Kind == "ssubscribe" {
				begun()
			}
		},
	})
	timed, cancel := context.WithTimeout(ctx, stalled)
	defer cancel()
	if err = c.subscribe(timed, conn, own); err != nil {
		own.Close()
		c.note(err, hearChanges, conn)
		return wrap("subscribe", err)
	}
	select {
	case <-ctx.Done():
		own.Close()
		return context.Cause(ctx)
	case err := <-lost:
		if err == nil {
			err = errLost
		}
		return wrap("listen", err)
	}
}

// understand reads a message. Anybody who may write to the server may send one, so keys
// that are none are passed over; a change that never was only costs a question.
func (c *Client) understand(text string) (cache.Note, bool) {
	var heard note
	if len(text) > maxNote || json.Unmarshal([]byte(text), &heard) != nil {
		c.counts.unreadable.Add(1)
		return cache.Note{}, false
	}
	if heard.Try {
		return cache.Note{}, false
	}
	n := cache.Note{}
	if len(heard.Heads) == 0 && heard.Head > 0 {
		heard.Heads = []uint64{heard.Head}
	}
	for _, s := range heard.Heads {
		n.Head = append(n.Head, link.Sequence(s))
	}
	for _, ch := range heard.Changes {
		k := link.Key{Domain: link.Domain(ch.Domain), Code: link.Code(ch.Code)}
		if k.Validate() != nil || ch.Version == 0 || ch.Version >= maxVersion {
			c.counts.unreadable.Add(1)
			continue
		}
		n.Changes = append(n.Changes, link.Change{Partition: ch.Partition, Sequence: link.Sequence(ch.Sequence), Key: k, Version: link.Version(ch.Version)})
	}
	return n, true
}
