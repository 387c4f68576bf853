// Package fleet has the command "curt fleet status": one screen about each part of a fleet. It
// reads what the parts say of themselves, and what servers say at their admin listeners.
package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	"curt/internal/cli"
	"curt/internal/clicks/ship"
	"curt/internal/config"
)

// Status is the command "curt fleet status".
type Status struct {
	config.Flags
	cli.Format

	Servers []string `env:"CURT_FLEET_SERVERS" placeholder:"HOST:PORT" help:"Admin addresses (CURT_ADMIN_LISTEN) of the fleet's servers, separated by commas; a name with several addresses is one server each."`
	Primary string   `env:"CURT_FLEET_PRIMARY" placeholder:"URL" help:"Direct URL of the PostgreSQL primary, if CURT_LINKS is that of a pooler."`
}

// The exit codes, those of curt doctor.
const (
	exitWarned = 1
	exitFailed = 2
)

// limit bounds the queries to all parts, which run at the same time.
const limit = 10 * time.Second

// The states of a part.
const (
	ok      = "ok"
	warning = "warning"
	failure = "failure"
)

// part is a line of the screen.
type part struct {
	Part    string   `json:"part"`
	Address string   `json:"address"`
	Role    string   `json:"role"`
	Version string   `json:"version"`
	Lag     string   `json:"lag"`
	State   string   `json:"state"`
	Wrong   []string `json:"wrong"`
}

func newPart(name, address, role string) part {
	return part{Part: name, Address: address, Role: role, State: ok, Wrong: []string{}}
}

// warn adds a problem that the fleet works with.
func (p *part) warn(text string) {
	if p.State == ok {
		p.State = warning
	}
	p.Wrong = append(p.Wrong, text)
}

// fail adds a problem that stops a part of the fleet's work.
func (p *part) fail(text string) {
	p.State = failure
	p.Wrong = append(p.Wrong, text)
}

// errWrong ends a status with problems, which have been printed.
var errWrong = errors.New("parts of the fleet have problems")

// Run prints a line per part. The exit code is 1 if there are warnings, 2 if there are failures.
func (c *Status) Run(ctx context.Context, t cli.Terminal) error {
	if c.Links == config.SQLite {
		return &config.Error{Setting: "CURT_LINKS", Value: c.Links, Want: "a fleet shares a link store: postgres://host/database"}
	}
	parts := c.inspect(ctx, time.Now())
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	if err := cli.NewTable(t, c.Format, columns()).Print(parts); err != nil {
		return err
	}
	if len(c.Servers) == 0 {
		t.Note("servers are not shown: set CURT_FLEET_SERVERS to their admin addresses")
	}
	code := 0
	for _, p := range parts {
		switch p.State {
		case failure:
			code = exitFailed
		case warning:
			code = max(code, exitWarned)
		}
	}
	if code != 0 {
		return cli.Reported(cli.WithCode(errWrong, code))
	}
	return nil
}

// inspect queries all parts at once, and returns them in a fixed order.
func (c *Status) inspect(ctx context.Context, now time.Time) (all []part) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	senders := sync.OnceValues(func() ([]ship.Sender, error) { return c.senders(ctx) })
	inspections := []func(context.Context) []part{
		c.balancer,
		func(ctx context.Context) []part { return c.links(ctx, senders) },
		c.redis, c.zooKeeper, c.kafka, c.queue,
		func(ctx context.Context) []part { return c.clickHouse(ctx, senders, now) },
	}
	for _, address := range addressesOf(ctx, c.Servers) {
		inspections = append(inspections, func(ctx context.Context) []part { return []part{server(ctx, address)} })
	}
	found := make([][]part, len(inspections))
	var running sync.WaitGroup
	for i, inspection := range inspections {
		running.Go(func() { found[i] = inspection(ctx) })
	}
	running.Wait()
	for _, parts := range found {
		all = append(all, parts...)
	}
	return all
}

func columns() []cli.Column[part] {
	return []cli.Column[part]{
		{Name: "PART", Text: func(p *part) string { return p.Part }},
		{Name: "ADDRESS", Text: func(p *part) string { return cli.Truncate(p.Address, 40) }},
		{Name: "ROLE", Text: func(p *part) string { return p.Role }},
		{Name: "VERSION", Text: func(p *part) string { return p.Version }},
		{Name: "LAG", Text: func(p *part) string { return p.Lag }},
		{Name: "STATE", Text: func(p *part) string { return p.State }},
		{Name: "PROBLEM", Text: func(p *part) string { return joined(p.Wrong) }},
	}
}
