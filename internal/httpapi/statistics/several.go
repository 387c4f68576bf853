package statistics

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/clicks"
	"curt/internal/httpapi/kernel"
	"curt/internal/link"
)

const (
	statsPath = "/api/v1/stats"

	// maxSeriesLinks is a page of links, and maxSeriesDays a quarter: a link costs a
	// question of some 0.1 ms, and 1 µs for each day.
	maxSeriesLinks = 100
	maxSeriesDays  = 92
)

// LinksSeries are the days of many links, for small pictures of each.
type LinksSeries struct {
	Start  time.Time    `json:"start" doc:"The start of the first day."`
	Series []LinkSeries `json:"series" nullable:"false" doc:"In request order; unknown links are omitted."`
}

// LinkSeries are the days of one link.
type LinkSeries struct {
	Domain    string   `json:"domain"`
	ShortCode string   `json:"short_code"`
	Clicks    []uint64 `json:"clicks" nullable:"false" doc:"Clicks per day (UTC), oldest first; the last day is today."`
}

func (st *Statistics) seriesOperation(d kernel.Describer) *kernel.Operation {
	return &kernel.Operation{
		Operation: huma.Operation{
			Method: http.MethodGet, Path: statsPath + "/links", OperationID: "links-series", Summary: "Get the daily clicks of several links",
			Parameters: []*huma.Param{
				kernel.ShownWith("manual,go.example/none", kernel.QueryParam("links", fmt.Sprintf("Up to %d links, separated by commas: CODE on the default domain, DOMAIN/CODE on another.", maxSeriesLinks),
					&huma.Schema{Type: huma.TypeString})),
				kernel.QueryParam("days", "Number of days, ending today.", kernel.RangeSchema(1, maxSeriesDays, 14)),
			},
			Responses: d.Answers(200, "The daily clicks of each link.", LinksSeries{}, nil),
		},
		Action: auth.ReadStats, Serve: kernel.Reply(http.StatusOK, st.linksSeries),
	}
}

func (st *Statistics) linksSeries(c *kernel.Call) (list LinksSeries, err error) {
	days, err := c.Integer("days")
	if err != nil {
		return list, err
	}
	keys, err := st.listed(c)
	if err != nil {
		return list, err
	}
	to := analytics.Day.Ceil(c.Now, time.UTC)
	from := analytics.Day.Back(to, days)
	list = LinksSeries{Start: from, Series: []LinkSeries{}}
	ctx, _ := analytics.WithAge(c.R.Context()) // a slow store is waited for once, not for each link
	for _, k := range keys {
		switch err := st.Links.Service.Exists(c.R.Context(), c.Who, k); {
		case errors.Is(err, link.ErrNotFound):
			continue
		case err != nil:
			return list, err
		}
		points, err := st.Links.Stats.Series(ctx, analytics.Scope{Key: k, From: from, To: to}, analytics.Day, c.Now)
		if err != nil {
			return list, fmt.Errorf("daily clicks of %s: %w", k, err)
		}
		s := LinkSeries{Domain: st.Links.Host(k.Domain), ShortCode: string(k.Code), Clicks: make([]uint64, len(points))}
		for i := range points {
			s.Clicks[i] = points[i].Clicks
		}
		list.Series = append(list.Series, s)
	}
	return list, nil
}

// listed returns the keys that the parameter links names.
func (st *Statistics) listed(c *kernel.Call) ([]link.Key, error) {
	if !c.Query.Has("links") {
		return nil, nil
	}
	names := strings.Split(c.Query.Get("links"), ",")
	if len(names) > maxSeriesLinks {
		return nil, kernel.BadField("links", fmt.Sprintf("expected at most %d", maxSeriesLinks))
	}
	keys := make([]link.Key, 0, len(names))
	for _, name := range names {
		domain, code, named := strings.Cut(name, "/")
		if !named {
			domain, code = "", name
		}
		if !link.ValidCode(code) || named && domain == "" {
			return nil, kernel.BadField("links", fmt.Sprintf("%q is not CODE or DOMAIN/CODE", kernel.Clip(name)))
		}
		if d, ours := st.Links.Service.Domain(domain); ours {
			keys = append(keys, link.Key{Domain: d, Code: link.Code(code)})
		}
	}
	return keys, nil
}

// WorkspaceStats are the statistics of all links of a workspace together.
type WorkspaceStats struct {
	WorkspaceID string       `json:"workspace_id"`
	Orphans     *OrphanStats `json:"orphans" doc:"Requests for unknown codes, on the whole server; null for keys without the scope admin."`
	Counted
}

// OrphanStats are requests that no link answered.
type OrphanStats struct {
	TotalClicks uint64 `json:"total_clicks"`
	Clicks24h   uint64 `json:"clicks_24h"`
}

func (st *Statistics) workspaceOperations(d kernel.Describer) []*kernel.Operation {
	workspace := kernel.QueryParam("workspace_id", "The workspace. Default: that of the key. Other workspaces require the scope admin.", &huma.Schema{Type: huma.TypeString})
	return []*kernel.Operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: statsPath, OperationID: "workspace-stats", Summary: "Get the statistics of a workspace",
				Description: "The clicks of all links of a workspace, including deleted ones. Clicks counted by releases without workspaces are only in the statistics of their links.",
				Parameters:  slices.Concat([]*huma.Param{workspace}, statsParams(), filterParams("; see filtered_from")),
				Responses:   d.Answers(200, "The statistics.", WorkspaceStats{}, nil),
			},
			Action: auth.ReadStats, Serve: kernel.Reply(http.StatusOK, st.workspaceStats),
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: "/api/v1" + livePath, OperationID: "live-workspace-clicks", Summary: "Stream the click count of a workspace",
				Description: liveDescription(), Parameters: []*huma.Param{workspace}, Responses: liveAnswers(d),
			},
			Action: auth.ReadStats, Serve: st.liveWorkspace,
		},
	}
}

// workspace returns whose links are meant.
func workspace(c *kernel.Call) (link.WorkspaceID, error) {
	if !c.Query.Has("workspace_id") {
		return c.Who.Workspace, nil
	}
	named := link.WorkspaceID(c.Query.Get("workspace_id"))
	switch {
	case auth.May(c.Who, c.Action(), auth.In(named)) != nil:
		return "", auth.ErrForbidden
	case len(named) > link.MaxName:
		return "", kernel.BadField("workspace_id", "invalid workspace")
	}
	return named, nil
}

func (st *Statistics) workspaceStats(c *kernel.Call) (s WorkspaceStats, err error) {
	q, err := readQuestion(c)
	if err != nil {
		return s, err
	}
	w, err := workspace(c)
	if err != nil {
		return s, err
	}
	q.scope.Key = clicks.GroupKey(string(w))
	s.WorkspaceID = string(w)
	if s.Counted, err = st.statistics(c, q); err != nil {
		return s, err
	}
	if auth.May(c.Who, c.Action(), auth.Everywhere()) == nil {
		t, err := st.Links.Stats.Totals(c.R.Context(), analytics.Scope{}, c.Now)
		if err != nil {
			return s, fmt.Errorf("statistics of unknown codes: %w", err)
		}
		s.Orphans = &OrphanStats{t.Clicks, t.Clicks24h}
	}
	return s, nil
}

func (st *Statistics) liveWorkspace(c *kernel.Call) error {
	w, err := workspace(c)
	if err != nil {
		return err
	}
	return st.watch(c, clicks.GroupKey(string(w)), func(who auth.Principal) error {
		if auth.May(who, c.Action(), auth.In(w)) != nil {
			return auth.ErrForbidden
		}
		return nil
	})
}
