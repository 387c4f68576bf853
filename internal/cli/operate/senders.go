package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/settings"
)

// ListSenders is the command "curt clicks servers".
type ListSenders struct {
	config.Flags
	cli.Format
}

// sender is a server that may hold clicks.
type sender struct {
	Name          string     `json:"name"`
	Host          string     `json:"host"`
	State         string     `json:"state"`
	CompleteUntil *time.Time `json:"complete_until"` // of its clicks
	HeardAt       *time.Time `json:"heard_at"`
}

// Run lists the servers that statistics wait for.
func (c *ListSenders) Run(ctx context.Context, t cli.Terminal) error {
	var all []watermarks.SenderProgress
	err := withSenders(ctx, c.Config, func(senders settings.Senders) error {
		store, err := openStore(ctx, clickhouse.OpenAsIs, c.Config, 1, senders.All)
		if err != nil {
			return err
		}
		p, err := store.Progress(ctx, time.Now())
		all = p.Senders
		return errors.Join(err, store.Close())
	})
	if err != nil {
		return err
	}
	lines := make([]sender, len(all))
	for i := range all {
		one := &all[i]
		lines[i] = sender{Name: one.Folder, Host: one.Host, State: stateOf(one), CompleteUntil: known(one.Until), HeardAt: known(one.LastContact)}
	}
	return cli.NewTable(t, c.Format, senderColumns()).Print(lines)
}

// stateOf is the state of a server in one word.
func stateOf(s *watermarks.SenderProgress) string {
	switch {
	case s.Ended:
		return "ended"
	case s.Gone:
		return "silent"
	case !s.Forgotten.IsZero() && !s.LastContact.After(s.Forgotten):
		return "forgotten"
	case s.LastContact.IsZero():
		return "unheard"
	}
	return "sends"
}

// known returns a time, or nil if it is unknown.
func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func senderColumns() []cli.Column[sender] {
	return []cli.Column[sender]{
		{Name: "NAME", Text: func(s *sender) string { return s.Name }},
		{Name: "HOST", Text: func(s *sender) string { return cli.Truncate(s.Host, 40) }},
		{Name: "STATE", Text: func(s *sender) string { return s.State }},
		{Name: "COMPLETE UNTIL", Text: func(s *sender) string { return cli.When(s.CompleteUntil) }},
		{Name: "HEARD", Text: func(s *sender) string { return cli.When(s.HeardAt) }},
	}
}

// ForgetSender is the command "curt clicks forget".
type ForgetSender struct {
	config.Flags

	Name string `arg:"" help:"The server's name, as listed by curt clicks servers; it is in the file instance of its data folder."`
	Yes  bool   `short:"y" help:"Skip the confirmation."`
}

// Run ends the wait of statistics for a server.
func (c *ForgetSender) Run(ctx context.Context, t cli.Terminal) error {
	question := fmt.Sprintf("Stop waiting for clicks of %q? Clicks in its click log count only if it starts again.", c.Name)
	if err := t.Confirm(ctx, c.Yes, question); err != nil {
		return err
	}
	found := false
	err := withSenders(ctx, c.Config, func(senders settings.Senders) (err error) {
		found, err = senders.Forget(ctx, c.Name)
		return err
	})
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("unknown server %q; list them with curt clicks servers", c.Name)
	}
	t.Note("statistics no longer wait for %s, unless it returns", c.Name)
	return nil
}

// withSenders calls f with the servers that the store of links knows to send clicks.
func withSenders(ctx context.Context, cfg config.Config, f func(settings.Senders) error) error {
	if cfg.Events == "" || cfg.Links == config.SQLite {
		return &config.Error{Setting: "CURT_EVENTS", Value: config.Redact(cfg.Events), Want: "expected kafka://host:port/topic, and CURT_LINKS=postgres://user@host/database or dynamodb://table?region=region"}
	}
	return settings.WithSenders(ctx, cfg, f)
}
