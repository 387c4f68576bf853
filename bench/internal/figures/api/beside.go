package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"curt/bench/internal/figures"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

const (
	besideRate  = 500 // redirects a second, each of two kinds
	besideConns = 8   // that ask heavy questions as fast as they are answered
	besideLeast = 10  // ms: what p99 may be however fast redirects are alone
)

// beside measures redirects alone and beside questions of the API that cost most: previews of
// bans, which look at links for two seconds, and lists whose filter few links meet.
func beside(ctx context.Context, b *figures.Bench) (rows []report.Row, err error) {
	err = onBusy(ctx, b, func(ctx context.Context, a *store) error {
		hot, err := figures.Seed(ctx, a.server, figures.HotLinks)
		if err != nil {
			return err
		}
		order, next := rand.Perm(a.Count()), 0
		cold := func(*rand.Rand) string { // each link once, of those that redirect
			for next++; !a.Plain(order[next-1]); next++ {
			}
			return string(a.Code(order[next-1]))
		}
		visits := func() []load.Stream {
			return []load.Stream{
				figures.Redirects(a.server.Addr, figures.ClickConns, besideRate, figures.Popular(len(hot), func(i int) string { return hot[i] })),
				figures.Redirects(a.server.Addr, figures.ClickConns, besideRate, cold),
			}
		}
		drive := func(more ...load.Stream) func(context.Context) (figures.Sample, error) {
			return func(ctx context.Context) (figures.Sample, error) {
				if want := int(2*besideRate*(b.Config.Warmup+b.Config.Measure).Seconds()) + 100; len(order)-next < want {
					return figures.Sample{}, fmt.Errorf("%d links were never asked for, %d are wanted: fill more of them", len(order)-next, want)
				}
				return b.Drive(ctx, a.server, -1, append(visits(), more...)...)
			}
		}
		all, err := b.Rounds(ctx,
			figures.Turn{Name: "redirects alone", Run: drive()},
			figures.Turn{Name: "beside previews", Run: drive(previews(a.server))},
			figures.Turn{Name: "beside lists", Run: drive(rareLists(a.server))})
		if err != nil {
			return err
		}
		for i, what := range []string{"previews of bans", "lists of few of the links"} {
			for stream, kind := range []string{"hot", "cold"} {
				rows = append(rows, besideRow(fmt.Sprintf("%s redirect p99 beside %d %s, %s", kind, besideConns, what, figures.SizeName(a.Count())),
					stream, all[i+1], all[0]))
			}
		}
		return nil
	})
	return rows, err
}

func besideRow(name string, stream int, s, alone figures.Series) report.Row {
	base := alone.Quantile(stream, 0.99)
	return report.Row{
		Figure: name, Unit: report.Milliseconds, Values: s.Quantile(stream, 0.99), Broken: s.Broken(),
		Bases: []report.Base{{Name: "redirects alone", Values: base}},
		Bar:   report.Bar{AtMost: max(besideLeast, 2*report.Median(base))},
	}
}

// previews count what a ban of a domain would mean.
func previews(s *process.Server) load.Stream {
	request := figures.Post(s, "/api/v1/bans/preview", []byte(`{"kind":"domain","name":"nobody.example"}`))
	return load.Stream{
		Name: "previews", Addr: s.Addr, Conns: besideConns, Want: http.StatusOK,
		Next: func(b []byte) []byte { return append(b, request...) },
	}
}

// rareLists ask for what a list has to look for far and wide.
func rareLists(s *process.Server) load.Stream {
	request := figures.Get(s, "/api/v1/links?status=disabled&sort=created_at&limit=100", figures.AdminKey)
	return load.Stream{
		Name: "lists", Addr: s.Addr, Conns: besideConns, Want: http.StatusOK,
		Next: func(b []byte) []byte { return append(b, request...) },
	}
}
