package sqlite_test

import (
	"crypto/sha256"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/backend/sqlite"
	"curt/internal/link"
)

func TestKeys(t *testing.T) {
	f, stores := new(files), map[auth.Store]*sqlite.Links{}
	authtest.Run(t,
		func(t *testing.T) auth.Store {
			s := f.fresh(t)
			k := s.Accounts().Keys()
			stores[k] = s
			return k
		},
		func(t *testing.T, s auth.Store) auth.Store { return f.again(t, stores[s]).Accounts().Keys() })
}

// A file of the first release gets the plans of its workspaces.
func TestWorkspacesOfTheFirstReleaseGetTheirPlans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "curt.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations/links"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `INSERT INTO workspaces (name) VALUES ('acme'), ('anonymous')`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := new(files).open(t, path).Accounts().Keys()
	for workspace, want := range map[link.WorkspaceID]auth.Plan{
		link.WorkspaceDefault: auth.PlanDefault, link.WorkspaceAnonymous: auth.PlanAnonymous,
		"acme": auth.PlanRegistered, "new": auth.PlanRegistered,
	} {
		k := auth.Key{ID: link.ID{byte(len(workspace))}, Workspace: workspace}
		if k, err = s.Create(t.Context(), k, "", auth.Sum(sha256.Sum256([]byte(workspace)))); err != nil || k.Plan != want {
			t.Errorf("%s: plan %q, %v; want %q", workspace, k.Plan, err, want)
		}
	}
}
