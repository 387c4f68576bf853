package httpapi

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/clicks"
	"curt/internal/link"
)

// WorkspaceStats are the statistics of all links of a workspace together.
type WorkspaceStats struct {
	WorkspaceID string       `json:"workspace_id"`
	Orphans     *OrphanStats `json:"orphans" doc:"Requests for codes that no link has, on the whole server; null for keys without the scope admin."`
	Counted
}

// OrphanStats are requests that no link answered.
type OrphanStats struct {
	TotalClicks uint64 `json:"total_clicks"`
	Clicks24h   uint64 `json:"clicks_24h"`
}

func (a *api) workspaceOperations(d describer) []*operation {
	workspace := queryParam("workspace_id", "The workspace; without it, that of the key. Only keys with the scope admin may name another's.", &huma.Schema{Type: huma.TypeString})
	return []*operation{
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: statsPath, OperationID: "workspace-stats", Summary: "Count the clicks of all links",
				Description: "The clicks of all links of a workspace, also of those that were deleted since. What an older release counted, which knew no workspaces, is in the statistics of its links alone.",
				Parameters:  slices.Concat([]*huma.Param{workspace}, statsParams(), filterParams("; see filtered_from")),
				Responses:   d.answers(200, "The statistics.", WorkspaceStats{}, nil),
			},
			action: auth.ReadStats, serve: (*call).workspaceStats,
		},
		{
			Operation: huma.Operation{
				Method: http.MethodGet, Path: "/api/v1" + livePath, OperationID: "live-workspace-clicks", Summary: "Watch the clicks of all links",
				Description: liveDescription(), Parameters: []*huma.Param{workspace}, Responses: liveAnswers(d),
			},
			action: auth.ReadStats, serve: (*call).liveWorkspace,
		},
	}
}

// workspace returns whose links are meant.
func (c *call) workspace() (link.WorkspaceID, error) {
	if !c.query.Has("workspace_id") {
		return c.who.Workspace, nil
	}
	named := link.WorkspaceID(c.query.Get("workspace_id"))
	switch {
	case auth.May(c.who, c.op.action, auth.In(named)) != nil:
		return "", auth.ErrForbidden
	case len(named) > link.MaxName:
		return "", badField("workspace_id", "can be no workspace")
	}
	return named, nil
}

func (c *call) workspaceStats() error {
	q, err := c.statsQuestion()
	if err != nil {
		return err
	}
	w, err := c.workspace()
	if err != nil {
		return err
	}
	q.scope.Key = clicks.GroupKey(string(w))
	counted, err := c.statistics(q)
	if err != nil {
		return err
	}
	s := WorkspaceStats{WorkspaceID: string(w), Counted: counted}
	if auth.May(c.who, c.op.action, auth.Everywhere()) == nil {
		t, err := c.api.stats.Totals(c.r.Context(), analytics.Scope{}, c.now)
		if err != nil {
			return fmt.Errorf("statistics of orphans: %w", err)
		}
		s.Orphans = &OrphanStats{t.Clicks, t.Clicks24h}
	}
	return c.json(http.StatusOK, s)
}

func (c *call) liveWorkspace() error {
	w, err := c.workspace()
	if err != nil {
		return err
	}
	return c.watch(clicks.GroupKey(string(w)), func(who auth.Principal) error {
		if auth.May(who, c.op.action, auth.In(w)) != nil {
			return auth.ErrForbidden
		}
		return nil
	})
}
