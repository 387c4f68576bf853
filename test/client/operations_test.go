package client_test

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"curt.example/client"
)

// calls has a method of the Client for each operation of the API.
func calls(ctx context.Context, c *client.Client) map[string]func() error {
	return map[string]func() error{
		"create-link":    func() error { _, err := c.Create(ctx, client.NewLink{}); return err },
		"create-links":   func() error { _, err := c.CreateMany(ctx, nil); return err },
		"list-links":     func() error { _, err := c.Find(ctx, client.ListQuery{}); return err },
		"get-link":       func() error { _, err := c.Get(ctx, "x"); return err },
		"change-link":    func() error { _, err := c.Update(ctx, "x", nil); return err },
		"delete-link":    func() error { return c.Delete(ctx, "x") },
		"link-stats":     func() error { _, err := c.Stats(ctx, "x", client.StatsQuery{}); return err },
		"live-clicks":    func() error { return c.WatchClicks(ctx, "x", "", nil) },
		"links-series":   func() error { _, err := c.LinksSeries(ctx, nil, 0); return err },
		"link-clicks":    func() error { _, err := c.Clicks(ctx, "x", client.ClicksQuery{}); return err },
		"link-qr":        func() error { _, err := c.QR(ctx, "x", client.QRQuery{}); return err },
		"alias-qr":       func() error { _, err := c.AliasQR(ctx, "x", client.QRQuery{}); return err },
		"check-alias":    func() error { _, err := c.CheckAlias(ctx, "x", ""); return err },
		"reserve-alias":  func() error { _, err := c.Aliases.Reserve(ctx, "x", ""); return err },
		"release-alias":  func() error { return c.Aliases.Release(ctx, "x", "") },
		"share-stats":    func() error { _, err := c.Share(ctx, "x", time.Hour); return err },
		"unshare-stats":  func() error { return c.EndShares(ctx, "x") },
		"create-job":     func() error { _, err := c.Jobs.CreateExport(ctx, "csv"); return err },
		"list-jobs":      func() error { _, err := c.Jobs.List(ctx, "", 0); return err },
		"get-job":        func() error { _, err := c.Jobs.Get(ctx, "x"); return err },
		"send-job-input": func() error { _, err := c.Jobs.SendInput(ctx, "x", 0, nil, true); return err },
		"job-result":     func() error { _, err := c.Jobs.Result(ctx, "x", 0); return err },
		"cancel-job":     func() error { _, err := c.Jobs.Cancel(ctx, "x"); return err },
		"delete-job":     func() error { return c.Jobs.Delete(ctx, "x") },

		"create-key":           func() error { _, err := c.Keys.Create(ctx, client.NewKey{}); return err },
		"list-keys":            func() error { _, err := c.Keys.List(ctx, "", "", 0); return err },
		"get-key":              func() error { _, err := c.Keys.Get(ctx, "x"); return err },
		"rotate-key":           func() error { _, err := c.Keys.Rotate(ctx, "x", time.Hour); return err },
		"link-safety":          func() error { _, err := c.Moderation.Safety(ctx, "x"); return err },
		"decide-link":          func() error { _, err := c.Moderation.Decide(ctx, "x", "blocked", "why"); return err },
		"create-ban":           func() error { _, err := c.Moderation.Ban(ctx, client.NewBan{}); return err },
		"preview-ban":          func() error { _, err := c.Moderation.PreviewBan(ctx, client.Entity{}); return err },
		"list-bans":            func() error { _, err := c.Moderation.Bans(ctx, "", "", 0); return err },
		"lift-ban":             func() error { return c.Moderation.LiftBan(ctx, 1, "why") },
		"list-journal":         func() error { _, err := c.Moderation.Journal(ctx, client.JournalQuery{}); return err },
		"erase-entry":          func() error { _, err := c.Moderation.EraseEntry(ctx, 1, "why"); return err },
		"rebuild-links":        func() error { return c.Moderation.RebuildSafety(ctx, false) },
		"get-lists":            func() error { _, err := c.Lists.All(ctx); return err },
		"list-list-entries":    func() error { _, err := c.Lists.Entries(ctx, "look_alikes", "", 0); return err },
		"list-builtin-entries": func() error { _, err := c.Lists.BuiltinEntries(ctx, "look_alikes"); return err },
		"add-list-entry":       func() error { _, err := c.Lists.Add(ctx, "look_alikes", "x", "why"); return err },
		"remove-list-entry":    func() error { _, err := c.Lists.Remove(ctx, "look_alikes", "x", "why"); return err },
		"import-list":          func() error { _, err := c.Lists.Import(ctx, "look_alikes", "x", "why"); return err },
		"export-list":          func() error { _, err := c.Lists.Export(ctx, "look_alikes"); return err },

		"get-self":   func() error { _, err := c.Self(ctx); return err },
		"get-health": func() error { _, err := c.Health(ctx); return err },
		"revoke-key": func() error { return c.Keys.Revoke(ctx, "x") },

		"workspace-stats":       func() error { _, err := c.WorkspaceStats(ctx, "", client.StatsQuery{}); return err },
		"live-workspace-clicks": func() error { return c.WatchWorkspace(ctx, "", nil) },

		"report-link":    func() error { return c.Report(ctx, client.NewReport{}) },
		"appeal":         func() error { _, err := c.Moderation.Appeal(ctx, client.NewAppeal{}); return err },
		"get-appeal":     func() error { _, err := c.Moderation.GetAppeal(ctx, "x"); return err },
		"link-appeal":    func() error { _, err := c.Moderation.LinkAppeal(ctx, "x"); return err },
		"list-reviews":   func() error { _, err := c.Moderation.Reviews(ctx, client.ReviewQuery{}); return err },
		"get-review":     func() error { _, err := c.Moderation.Review(ctx, "x"); return err },
		"decide-reviews": func() error { _, err := c.Moderation.DecideMany(ctx, nil); return err },
		"answer-appeal":  func() error { _, err := c.Moderation.AnswerAppeal(ctx, "x", "clean", "y"); return err },
		"get-case":       func() error { _, err := c.Moderation.Case(ctx, "x"); return err },
		"decide-case":    func() error { _, err := c.Moderation.DecideCase(ctx, "x", client.CaseDecision{}); return err },
		"erase-case":     func() error { return c.Moderation.EraseCase(ctx, "x", "y") },
		"erase-reports":  func() error { return c.Moderation.EraseReports(ctx, "x") },
	}
}

// Every operation that api/openapi.yaml describes has its method, which sends that
// method to that path. The spellings of published designs are for programs that exist.
func TestClientCoversTheAPI(t *testing.T) {
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Paths map[string]map[string]struct {
			OperationID string   `yaml:"operationId"`
			Tags        []string `yaml:"tags"`
		} `yaml:"paths"`
	}
	if err := yaml.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	var got string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Method + " " + r.URL.Path
		w.WriteHeader(http.StatusTeapot)
	})
	methods, covered := calls(t.Context(), c), 0
	for path, operations := range described.Paths {
		for method, op := range operations {
			if slices.Contains(op.Tags, "compatibility") {
				continue
			}
			call := methods[op.OperationID]
			if call == nil {
				t.Errorf("the client has no method for %s (%s %s)", op.OperationID, method, path)
				continue
			}
			covered++
			want := strings.ToUpper(method) + " " + strings.NewReplacer("{code}", "x", "{alias}", "x", "{id}", "x", "{sequence}", "1", "{list}", "look_alikes", "{value}", "x", "{token}", "x", "{case}", "x").Replace(path)
			if err := call(); err == nil || got != want {
				t.Errorf("%s: the client asked %s (%v), want %s", op.OperationID, got, err, want)
			}
		}
	}
	if covered != len(methods) {
		t.Errorf("%d of %d methods have their operation", covered, len(methods))
	}
}
