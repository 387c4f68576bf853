package figures

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

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
func (b *Bench) beside(ctx context.Context) (rows []report.Row, err error) {
	err = b.onBusy(ctx, func(ctx context.Context, a *apiStore) error {
		hot, err := seed(ctx, a.server, hotLinks)
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
				redirects(a.server.Addr, clickConns, besideRate, popular(len(hot), func(i int) string { return hot[i] })),
				redirects(a.server.Addr, clickConns, besideRate, cold),
			}
		}
		drive := func(more ...load.Stream) func(context.Context) (sample, error) {
			return func(ctx context.Context) (sample, error) {
				if want := int(2*besideRate*(b.cfg.Warmup+b.cfg.Measure).Seconds()) + 100; len(order)-next < want {
					return sample{}, fmt.Errorf("%d links were never asked for, %d are wanted: fill more of them", len(order)-next, want)
				}
				return b.drive(ctx, a.server, -1, append(visits(), more...)...)
			}
		}
		all, err := b.rounds(ctx,
			turn{"redirects alone", drive()},
			turn{"beside previews", drive(previews(a.server))},
			turn{"beside lists", drive(rareLists(a.server))})
		if err != nil {
			return err
		}
		for i, what := range []string{"previews of bans", "lists of few of the links"} {
			for stream, kind := range []string{"hot", "cold"} {
				rows = append(rows, besideRow(fmt.Sprintf("%s redirect p99 beside %d %s, %s", kind, besideConns, what, sizeName(a.Count())),
					stream, all[i+1], all[0]))
			}
		}
		return nil
	})
	return rows, err
}

func besideRow(name string, stream int, s, alone series) report.Row {
	base := alone.quantile(stream, 0.99)
	return report.Row{
		Figure: name, Unit: report.Milliseconds, Values: s.quantile(stream, 0.99), Broken: s.broken(),
		Bases: []report.Base{{Name: "redirects alone", Values: base}},
		Bar:   report.Bar{AtMost: max(besideLeast, 2*report.Median(base))},
	}
}

// previews count what a ban of a domain would mean.
func previews(s *process.Server) load.Stream {
	request := post(s, "/api/v1/bans/preview", []byte(`{"kind":"domain","name":"nobody.example"}`))
	return load.Stream{
		Name: "previews", Addr: s.Addr, Conns: besideConns, Want: http.StatusOK,
		Next: func(b []byte) []byte { return append(b, request...) },
	}
}

// rareLists ask for what a list has to look for far and wide.
func rareLists(s *process.Server) load.Stream {
	request := get(s, "/api/v1/links?status=disabled&sort=created_at&limit=100", adminKey)
	return load.Stream{
		Name: "lists", Addr: s.Addr, Conns: besideConns, Want: http.StatusOK,
		Next: func(b []byte) []byte { return append(b, request...) },
	}
}
