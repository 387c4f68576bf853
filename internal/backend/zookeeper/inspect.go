package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// askLimit bounds what one server is asked about itself.
const askLimit = 2 * time.Second

// State is what ZooKeeper says of itself.
type State struct {
	Version     string
	Modes       []string // leader, follower or standalone, of the servers that serve
	Unavailable []string // servers that do not serve
}

// Inspect asks each server, by the command srvr, which all servers answer unless it was forbidden. The client has a function for
// that, which cannot read what 3.9 says.
func Inspect(ctx context.Context, cfg Config) (s State) {
	for _, server := range cfg.Servers {
		said := cfg.ask(ctx, server)
		mode := field(said, "Mode: ")
		if mode == "" {
			s.Unavailable = append(s.Unavailable, server)
			continue
		}
		s.Modes = append(s.Modes, mode)
		s.Version, _, _ = strings.Cut(field(said, "Zookeeper version: "), "-")
	}
	return s
}

// ask returns what a server says of itself; "" = nothing.
func (c Config) ask(ctx context.Context, server string) string {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	nc, err := c.dial(ctx, server, askLimit)
	if err != nil {
		return ""
	}
	defer func() { _ = nc.Close() }()
	at, _ := ctx.Deadline()
	_ = nc.SetDeadline(at)
	if _, err := io.WriteString(nc, "srvr"); err != nil {
		return ""
	}
	said, _ := io.ReadAll(io.LimitReader(nc, 4096)) // what came is enough
	return string(said)
}

// field returns the line that begins with a name.
func field(said, name string) string {
	_, rest, _ := strings.Cut("\n"+said, "\n"+name)
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// Probe reads a counter and says in one line what is there. It writes nothing.
func Probe(ctx context.Context, cfg Config) (what string, err error) {
	l, err := Open(cfg)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if _, err := l.Leased(ctx, "try"); err != nil {
		if wrong := l.Healthy(); wrong != nil { // shorter
			err = wrong
		}
		return "", err
	}
	state := Inspect(ctx, cfg)
	if len(state.Unavailable) > 0 && len(state.Modes) > 0 {
		return fmt.Sprintf("ZooKeeper %s; unavailable: %s", state.Version, strings.Join(state.Unavailable, ", ")), nil
	}
	return strings.TrimSpace("ZooKeeper " + state.Version), nil
}
