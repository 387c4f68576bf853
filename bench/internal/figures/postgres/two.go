package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"curt/bench/internal/figures"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

// two has two servers share what one does. Each of them is woken up about as often as one alone
// and finds less to do, which is no work of a server's: so nginx is asked in the same way.
func two(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	rates := []float64{someRate, manyRate}
	all, err := onPostgres(ctx, b, 10*figures.Seeded, func(p *bench) (turns []figures.Turn) {
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
		broken := one.Broken() + two.Broken() + nginx.Broken() + nginxes.Broken()
		rows = append(rows, report.Row{
			Figure: fmt.Sprintf("CPU per redirect at %.0f/s in all, role redirect: two servers ÷ one", rate), Unit: report.Ratio,
			Bar: report.Bar{AtMost: 1.1}, Values: ratios(two.PerRequest(), one.PerRequest()), Broken: broken,
			Bases: []report.Base{{Name: "two of nginx ÷ one", Values: ratios(nginxes.PerRequest(), nginx.PerRequest())}},
		}, report.Row{
			Figure: "– with two servers", Unit: report.Microseconds, Values: two.PerRequest(), Broken: broken,
			Bases: []report.Base{
				{Name: "with one", Values: one.PerRequest()},
				{Name: "two of nginx", Values: nginxes.PerRequest()},
				{Name: "one of nginx", Values: nginx.PerRequest()},
			},
		}, report.Row{
			Figure: "– CPU time of PostgreSQL for each, with two", Unit: report.Microseconds, Values: two.PerDatabase(), Broken: broken,
			Bases: []report.Base{{Name: "with one", Values: one.PerDatabase()}},
		})
	}
	return rows, nil
}

// followers is a turn of some servers that share a rate and a place for their clicks.
func (p *bench) followers(n int, rate float64) figures.Turn {
	return figures.Turn{Name: fmt.Sprintf("servers: %d at %.0f/s", n, rate), Run: func(ctx context.Context) (figures.Sample, error) {
		counts, err := p.server.Database(ctx)
		if err != nil {
			return figures.Sample{}, err
		}
		return p.begun(ctx, counts, n, nil, rate)
	}}
}

// begun starts servers until there are n, and asks them.
func (p *bench) begun(ctx context.Context, counts string, n int, servers []*process.Server, rate float64) (figures.Sample, error) {
	if len(servers) == n {
		return p.hot(ctx, rate, servers...)
	}
	return p.follower(ctx, counts, func(ctx context.Context, s *process.Server) (figures.Sample, error) {
		return p.begun(ctx, counts, n, append(servers, s), rate)
	})
}

// hot asks servers, each for its share, for links that all of them have in memory.
func (p *bench) hot(ctx context.Context, rate float64, servers ...*process.Server) (figures.Sample, error) {
	var first []load.Stream
	for _, s := range servers {
		asked := 0
		first = append(first, figures.Redirects(s.Addr, figures.ClickConns, 2*figures.Seeded, func(*rand.Rand) string {
			asked++
			return p.codes[asked%figures.Seeded]
		}))
	}
	if _, err := load.Run(ctx, load.Plan{Streams: first, Measure: time.Second}); err != nil {
		return figures.Sample{}, err
	}
	return p.shared(ctx, rate, servers...)
}

// shared asks servers, each for its share on its share of the connections.
func (p *bench) shared(ctx context.Context, rate float64, servers ...*process.Server) (figures.Sample, error) {
	var streams []load.Stream
	for _, s := range servers {
		streams = append(streams, figures.Redirects(s.Addr, figures.ClickConns/len(servers), rate/float64(len(servers)), figures.Popular(figures.Seeded, func(i int) string { return p.codes[i] })))
	}
	return p.driveWith(ctx, max(p.Config.Measure, shareTime), servers, streams...)
}

// nginxTurn is what followers is, of nginx.
func (p *bench) nginxTurn(n int, rate float64) figures.Turn {
	return figures.Turn{Name: fmt.Sprintf("nginx: %d at %.0f/s", n, rate), Run: func(ctx context.Context) (figures.Sample, error) {
		return nginxes(ctx, p.Bench, n, func(ctx context.Context, servers ...*process.Server) (figures.Sample, error) {
			return p.shared(ctx, rate, servers...)
		})
	}}
}
