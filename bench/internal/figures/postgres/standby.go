package postgres

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"curt/bench/internal/bare"
	"curt/bench/internal/figures"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
	"curt/bench/internal/service"
)

// standby has two servers create links in a PostgreSQL that commits only what its standby has, too;
// in turns with another binary, where one is given.
func standby(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	var standby *service.Service
	defer func() {
		if standby != nil {
			err = errors.Join(err, standby.Stop())
		}
	}()
	all, err := onPostgres(ctx, b, 0, func(p *bench) []figures.Turn {
		turns := []figures.Turn{{Name: "creates by two servers", Run: func(ctx context.Context) (figures.Sample, error) {
			if standby == nil {
				s, err := p.standby(ctx)
				if err != nil {
					return figures.Sample{}, err
				}
				standby = s
			}
			return p.createsByTwo(ctx, b.Config.Curt)
		}}}
		if b.Config.Against != "" {
			turns = append(turns, figures.Turn{Name: "the same of the other binary", Run: func(ctx context.Context) (figures.Sample, error) {
				return p.createsByTwo(ctx, b.Config.Against)
			}})
		}
		return turns
	})
	if err != nil {
		return nil, err
	}
	row := report.Row{
		Figure: fmt.Sprintf("durable creates by two servers in PostgreSQL with a synchronous standby, %d connections", figures.CreateConns),
		Unit:   report.PerSecond, Values: both(all[0]), CPU: all[0].PerRequest(), Broken: all[0].Broken(),
	}
	database := report.Row{Figure: "– CPU time of the primary for each", Unit: report.Microseconds, Values: all[0].PerDatabase(), Broken: all[0].Broken()}
	if len(all) > 1 {
		row.Bases = []report.Base{{Name: "the other binary", Values: both(all[1]), CPU: all[1].PerRequest()}}
		database.Bases = []report.Base{{Name: "the other binary", Values: all[1].PerDatabase()}}
	}
	return []report.Row{row, database}, nil
}

// both are the right answers a second of two streams.
func both(s figures.Series) []float64 {
	sum := s.PerSecond(0)
	for i, rate := range s.PerSecond(1) {
		sum[i] += rate
	}
	return sum
}

// standby starts a synchronous standby of the server.
func (p *bench) standby(ctx context.Context) (*service.Service, error) {
	_, port, ok := strings.Cut(p.server.Addr, ":")
	if !ok {
		return nil, fmt.Errorf("%s has no port", p.server.Addr)
	}
	return service.Start(ctx, "../scripts/services", filepath.Dir(p.Config.Temp), "standby", port)
}

// createsByTwo makes links in an empty database with two servers of a binary, each of which takes half of the clients.
func (p *bench) createsByTwo(ctx context.Context, binary string) (figures.Sample, error) {
	url, err := p.server.Database(ctx)
	if err != nil {
		return figures.Sample{}, err
	}
	defer func(of string) { p.Config.Curt = of }(p.Config.Curt)
	p.Config.Curt = binary
	return p.on(ctx, url, func(ctx context.Context, one *process.Server) (figures.Sample, error) {
		return p.on(ctx, url, func(ctx context.Context, two *process.Server) (figures.Sample, error) {
			servers := []*process.Server{one, two}
			var streams []load.Stream
			for _, s := range servers {
				streams = append(streams, figures.Creates(s.Addr, bare.CreatePath, figures.CreateConns/len(servers), 0))
			}
			return p.driveWith(ctx, p.Config.Measure, servers, streams...)
		})
	})
}
