package figures

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

// pgTwo has two servers share what one does. Each of them is woken up about as often as one alone
// and finds less to do, which is no work of a server's: so nginx is asked in the same way.
func (b *Bench) pgTwo(ctx context.Context) (rows []report.Row, err error) {
	rates := []float64{pgSomeRate, pgManyRate}
	all, err := b.onPostgres(ctx, 10*seeded, func(p *pgBench) (turns []turn) {
		for _, rate := range rates {
			turns = append(turns, p.followers(1, rate), p.followers(2, rate), p.nginxTurn(1, rate), p.nginxTurn(2, rate))
		}
		return turns
	})
	if err != nil {
		return nil, err
	}
	for i, rate := range rates {
		one, two, nginx, nginxes := all[4*i], all[4*i+1], all[4*i+2], all[4*i+3]
		broken := one.broken() + two.broken() + nginx.broken() + nginxes.broken()
		rows = append(rows, report.Row{
			Figure: fmt.Sprintf("CPU per redirect at %.0f/s in all, role redirect: two servers ÷ one", rate), Unit: report.Ratio,
			Bar: report.Bar{AtMost: 1.1}, Values: ratios(two.perRequest(), one.perRequest()), Broken: broken,
			Bases: []report.Base{{Name: "two of nginx ÷ one", Values: ratios(nginxes.perRequest(), nginx.perRequest())}},
		}, report.Row{
			Figure: "– with two servers", Unit: report.Microseconds, Values: two.perRequest(), Broken: broken,
			Bases: []report.Base{
				{Name: "with one", Values: one.perRequest()},
				{Name: "two of nginx", Values: nginxes.perRequest()},
				{Name: "one of nginx", Values: nginx.perRequest()},
			},
		}, report.Row{
			Figure: "– CPU time of PostgreSQL for each, with two", Unit: report.Microseconds, Values: two.perDatabase(), Broken: broken,
			Bases: []report.Base{{Name: "with one", Values: one.perDatabase()}},
		})
	}
	return rows, nil
}

// followers is a turn of some servers that share a rate and a place for their clicks.
func (p *pgBench) followers(n int, rate float64) turn {
	return turn{fmt.Sprintf("servers: %d at %.0f/s", n, rate), func(ctx context.Context) (sample, error) {
		counts, err := p.server.Database(ctx)
		if err != nil {
			return sample{}, err
		}
		return p.begun(ctx, counts, n, nil, rate)
	}}
}

// begun starts servers until there are n, and asks them.
func (p *pgBench) begun(ctx context.Context, counts string, n int, servers []*process.Server, rate float64) (sample, error) {
	if len(servers) == n {
		return p.hot(ctx, rate, servers...)
	}
	return p.follower(ctx, counts, func(ctx context.Context, s *process.Server) (sample, error) {
		return p.begun(ctx, counts, n, append(servers, s), rate)
	})
}

// hot asks servers, each for its share, for links that all of them have in memory.
func (p *pgBench) hot(ctx context.Context, rate float64, servers ...*process.Server) (sample, error) {
	var first []load.Stream
	for _, s := range servers {
		asked := 0
		first = append(first, redirects(s.Addr, clickConns, 2*seeded, func(*rand.Rand) string {
			asked++
			return p.codes[asked%seeded]
		}))
	}
	if _, err := load.Run(ctx, load.Plan{Streams: first, Measure: time.Second}); err != nil {
		return sample{}, err
	}
	return p.shared(ctx, rate, servers...)
}

// shared asks servers, each for its share on its share of the connections.
func (p *pgBench) shared(ctx context.Context, rate float64, servers ...*process.Server) (sample, error) {
	var streams []load.Stream
	for _, s := range servers {
		streams = append(streams, redirects(s.Addr, clickConns/len(servers), rate/float64(len(servers)), popular(seeded, func(i int) string { return p.codes[i] })))
	}
	return p.driveWith(ctx, max(p.cfg.Measure, pgShare), servers, streams...)
}

// nginxTurn is what followers is, of nginx.
func (p *pgBench) nginxTurn(n int, rate float64) turn {
	return turn{fmt.Sprintf("nginx: %d at %.0f/s", n, rate), func(ctx context.Context) (sample, error) {
		return p.nginxes(ctx, n, func(ctx context.Context, servers ...*process.Server) (sample, error) {
			return p.shared(ctx, rate, servers...)
		})
	}}
}
