package server

import (
	"context"

	"curt/internal/analytics"
	"curt/internal/httpapi"
	"curt/internal/link"
)

type statistics struct{ r analytics.Reader }

func (s statistics) Clicks(ctx context.Context, k []link.Key) ([]uint64, error) {
	return s.r.Clicks(ctx, k)
}

func (s statistics) Report(ctx context.Context, k link.Key, w httpapi.Window) (httpapi.Report, error) {
	t, err := s.r.Totals(ctx, analytics.Scope{Key: k}, w.Now)
	if err != nil {
		return httpapi.Report{}, err
	}
	step, _ := analytics.ParseStep(string(w.Interval))
	points, err := s.r.Series(ctx, analytics.Scope{Key: k, From: w.From, To: w.To}, step, w.Now)
	if err != nil {
		return httpapi.Report{}, err
	}
	r := httpapi.Report{
		TotalClicks: t.Clicks, HumanClicks: t.Humans, BotClicks: t.Clicks - t.Humans, Previews: t.Previews,
		VisitorDays: t.VisitorDays, Clicks24h: t.Clicks24h, LastClickedAt: t.LastClicked, LastUpdatedAt: t.LastUpdated, CompleteUntil: t.CompleteUntil,
	}
	for _, p := range points {
		r.Series = append(r.Series, httpapi.Point(p))
	}
	return r, nil
}
