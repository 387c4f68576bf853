package main

import (
	"context"
	"fmt"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/config"
	"curt/internal/server"
)

type clicksServersCmd struct {
	config.Flags
	format
}

// waitedFor is a line about a server that may hold clicks.
type waitedFor struct {
	Name          string     `json:"name"`
	Host          string     `json:"host"`
	State         string     `json:"state"`
	CompleteUntil *time.Time `json:"complete_until"` // of its clicks
	HeardAt       *time.Time `json:"heard_at"`
}

// Run lists the servers that statistics wait for.
func (c *clicksServersCmd) Run(ctx context.Context, t terminal) error {
	all, err := server.ClickSenders(ctx, c.Config)
	if err != nil {
		return err
	}
	lines := make([]waitedFor, len(all))
	for i := range all {
		one := &all[i]
		lines[i] = waitedFor{Name: one.Folder, Host: one.Host, State: stateOf(one), CompleteUntil: known(one.Until), HeardAt: known(one.Heard)}
	}
	return newSheet(t, c.format, waitedForColumns()).print(lines)
}

// stateOf says in one word how a server does.
func stateOf(s *clickhouse.SenderProgress) string {
	switch {
	case s.Ended:
		return "ended"
	case s.Gone:
		return "silent"
	case !s.Forgotten.IsZero() && !s.Heard.After(s.Forgotten):
		return "forgotten"
	case s.Heard.IsZero():
		return "unheard"
	}
	return "sends"
}

// known returns a time; nil = it is not known.
func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func waitedForColumns() []column[waitedFor] {
	return []column[waitedFor]{
		{"NAME", func(s *waitedFor) string { return s.Name }},
		{"HOST", func(s *waitedFor) string { return shortened(s.Host, 40) }},
		{"STATE", func(s *waitedFor) string { return s.State }},
		{"COMPLETE UNTIL", func(s *waitedFor) string { return when(s.CompleteUntil) }},
		{"HEARD", func(s *waitedFor) string { return when(s.HeardAt) }},
	}
}

type clicksForgetCmd struct {
	config.Flags

	Name string `arg:"" help:"The server's name, as curt clicks servers shows it, which is in the file instance of its data folder."`
	Yes  bool   `short:"y" help:"Do not ask."`
}

// Run has statistics wait for a server no more.
func (c *clicksForgetCmd) Run(ctx context.Context, t terminal) error {
	question := fmt.Sprintf("Wait no more for clicks of %q? What its click log still holds counts only if it starts again.", c.Name)
	if err := t.confirm(ctx, c.Yes, question); err != nil {
		return err
	}
	found, err := server.ForgetSender(ctx, c.Config, c.Name)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("no server %q is waited for; curt clicks servers lists them", c.Name)
	}
	t.note("statistics wait for %s no more, unless it is heard of again", c.Name)
	return nil
}
