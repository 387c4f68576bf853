// Package internal_test holds what no single package can: who may import whom.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers is the table of ARCHITECTURE.md, from the top down. A package may import
// packages of lower layers, and of its own layer only as beside allows.
func layers() [][]string {
	return [][]string{
		{"cmd/curt", "internal/licenses/gather", "internal/backend/countries/pack"},
		{"internal/cli/codes", "internal/cli/links", "internal/cli/fleet", "internal/cli/keys", "internal/cli/moderate", "internal/cli/movedata", "internal/cli/operate"},
		{"internal/cli"},
		{"internal/doctor"},
		{"internal/server"},
		{"internal/compose/frontend"},
		{"internal/compose/condition"},
		{"internal/compose/writing"},
		{"internal/compose/judging"},
		{"internal/compose/finding"},
		{"internal/compose/pipeline"},
		{"internal/compose/stores"},
		{"internal/compose"},
		{"internal/settings"},
		{"internal/move/back", "internal/move/relay"},
		{"internal/move"},
		{"internal/listen", "internal/datafolder"},
		{"internal/backup", "internal/worker", "internal/worker/heal", "internal/worker/refill", "internal/writer"},
		{
			"internal/lane", "internal/lane/head", "internal/lane/proxyproto", "internal/lane/strict", "internal/httpapi", "internal/web", "internal/web/asset", "internal/web/chart",
			"internal/httpapi/apidocs", "internal/httpapi/articles", "internal/httpapi/decisions", "internal/httpapi/health", "internal/httpapi/jobs", "internal/httpapi/kernel", "internal/httpapi/keys", "internal/httpapi/links", "internal/httpapi/lists", "internal/httpapi/reviews", "internal/httpapi/statistics",
			"internal/backend/sqlite", "internal/backend/sqlite/accounts", "internal/backend/sqlite/counts", "internal/backend/sqlite/leases", "internal/backend/sqlite/linklist", "internal/backend/sqlite/linkrow", "internal/backend/sqlite/moveout", "internal/backend/sqlite/refill", "internal/backend/sqlite/reservations", "internal/backend/sqlite/searchindex",
			"internal/backend/postgres", "internal/backend/postgres/accounts", "internal/backend/postgres/counts", "internal/backend/postgres/leases", "internal/backend/postgres/linkrow", "internal/backend/postgres/movein", "internal/backend/postgres/replicas", "internal/backend/postgres/reservations",
			"internal/backend/dynamodb", "internal/backend/dynamodb/changes", "internal/backend/dynamodb/linkitem", "internal/backend/dynamodb/rawlinks", "internal/backend/dynamodb/state", "internal/backend/dynamodb/tables",
			"internal/backend/limitrows", "internal/backend/redis", "internal/backend/redis/codefilter", "internal/backend/zookeeper", "internal/backend/clickhouse", "internal/backend/clickhouse/finalize", "internal/backend/clickhouse/reconcile", "internal/backend/clickhouse/statistics", "internal/backend/clickhouse/watermarks", "internal/backend/kafka", "internal/backend/mmdb", "internal/backend/countries",
		},
		{"internal/transfer"},
		{"internal/shorten/linkservice"},
		{"internal/redirect", "internal/shorten", "internal/shorten/create", "internal/shorten/edit", "internal/shorten/find", "internal/shorten/judge", "internal/shorten/reserve", "internal/exchange", "internal/review", "internal/backend/coldsql", "internal/backend/coldsql/coldcopy", "internal/backend/coldsql/coldjobs", "internal/backend/coldsql/coldreviews", "internal/backend/sqlite/sqlitedb", "internal/backend/sqlite/snapshot", "internal/backend/postgres/pgdb", "internal/backend/dynamodb/ddb", "internal/backend/clickhouse/clickdb"},
		{"internal/cache", "internal/cache/floors", "internal/cache/issued", "internal/cache/keyhash", "internal/analytics", "internal/auth", "internal/expiry", "internal/search", "internal/domains", "internal/abuse", "internal/abuse/blocklist", "internal/abuse/lookalike", "internal/abuse/signals", "internal/moderation", "internal/moderation/bans", "internal/moderation/lists", "internal/moderation/moderator", "internal/connlimit"},
		{"internal/clicks/capture", "internal/clicks/fold", "internal/clicks/history", "internal/clicks/recount", "internal/clicks/ship"},
		{"internal/clicks/groups", "internal/clicks/rollup"},
		{"internal/clicks/clicklog"},
		{"internal/clicks/headers", "internal/clicks/idset", "internal/clicks/useragent"},
		{"internal/clicks"},
		{"internal/feed", "internal/hosts", "internal/job", "internal/codegen/keypool", "internal/pending"},
		{"internal/handover", "internal/link", "internal/codegen", "internal/idempotency", "internal/joblease", "internal/qr", "internal/ratelimit", "internal/telemetry", "internal/weburl", "internal/clientaddr", "internal/bodies"},
		{"internal/abuse/listfile"},
		{"internal/abuse/skeleton", "internal/background", "internal/clienttls", "internal/licenses", "internal/repeatlog", "internal/statefile", "internal/walfile"},
	}
}

// beside are the imports within one layer, and config, which only the top sees.
func beside() map[string][]string {
	return map[string][]string{
		"internal/cli":                           {"internal/config", "client"},
		"internal/cli/codes":                     {"internal/config"},
		"internal/cli/fleet":                     {"internal/config"},
		"internal/cli/keys":                      {"internal/config", "client"},
		"internal/cli/links":                     {"internal/config", "client"},
		"internal/cli/moderate":                  {"client"},
		"internal/cli/movedata":                  {"internal/config", "client"},
		"internal/cli/operate":                   {"internal/config"},
		"internal/abuse/blocklist":               {"internal/abuse"},
		"internal/abuse/lookalike":               {"internal/abuse"},
		"internal/abuse/signals":                 {"internal/abuse"},
		"internal/backend/clickhouse":            {"internal/backend/clickhouse/finalize", "internal/backend/clickhouse/reconcile", "internal/backend/clickhouse/statistics", "internal/backend/clickhouse/watermarks"},
		"internal/backend/clickhouse/reconcile":  {"internal/backend/clickhouse/finalize"},
		"internal/backend/clickhouse/statistics": {"internal/backend/clickhouse/finalize", "internal/backend/clickhouse/watermarks"},
		"internal/backend/coldsql/coldcopy":      {"internal/backend/coldsql"},
		"internal/backend/coldsql/coldjobs":      {"internal/backend/coldsql"},
		"internal/backend/coldsql/coldreviews":   {"internal/backend/coldsql"},
		"internal/backend/dynamodb":              {"internal/backend/dynamodb/changes", "internal/backend/dynamodb/linkitem", "internal/backend/dynamodb/state", "internal/backend/dynamodb/tables"},
		"internal/backend/dynamodb/changes":      {"internal/backend/dynamodb/linkitem"},
		"internal/backend/dynamodb/rawlinks":     {"internal/backend/dynamodb/linkitem", "internal/backend/dynamodb/state", "internal/backend/dynamodb/tables"},
		"internal/backend/dynamodb/tables":       {"internal/backend/dynamodb/linkitem"},
		"internal/backend/postgres":              {"internal/backend/postgres/accounts", "internal/backend/postgres/leases", "internal/backend/postgres/linkrow", "internal/backend/postgres/replicas", "internal/backend/postgres/reservations"},
		"internal/backend/postgres/movein":       {"internal/backend/postgres/accounts", "internal/backend/postgres/linkrow", "internal/backend/postgres/reservations"},
		"internal/backend/postgres/pgdb":         {"internal/backend/coldsql"},
		"internal/backend/postgres/replicas":     {"internal/backend/postgres/linkrow"},
		"internal/backend/sqlite":                {"internal/backend/sqlite/accounts", "internal/backend/sqlite/leases", "internal/backend/sqlite/linklist", "internal/backend/sqlite/linkrow", "internal/backend/sqlite/reservations"},
		"internal/backend/sqlite/linklist":       {"internal/backend/sqlite/linkrow"},
		"internal/backend/sqlite/moveout":        {"internal/backend/sqlite", "internal/backend/sqlite/accounts", "internal/backend/sqlite/counts", "internal/backend/sqlite/linkrow"},
		"internal/backend/sqlite/refill":         {"internal/backend/sqlite", "internal/backend/sqlite/counts"},
		"internal/backend/sqlite/snapshot":       {"internal/backend/sqlite/sqlitedb"},
		"internal/backend/redis/codefilter":      {"internal/backend/redis"},
		"internal/cache":                         {"internal/cache/floors", "internal/cache/issued", "internal/cache/keyhash"},
		"internal/codegen":                       {"internal/link"},
		"internal/doctor":                        {"internal/config"},
		"internal/httpapi":                       {"internal/httpapi/apidocs", "internal/httpapi/articles", "internal/httpapi/decisions", "internal/httpapi/health", "internal/httpapi/jobs", "internal/httpapi/kernel", "internal/httpapi/keys", "internal/httpapi/links", "internal/httpapi/lists", "internal/httpapi/reviews", "internal/httpapi/statistics"},
		"internal/httpapi/apidocs":               {"internal/httpapi/kernel"},
		"internal/httpapi/articles":              {"internal/httpapi/kernel", "internal/httpapi/links"},
		"internal/httpapi/decisions":             {"internal/httpapi/kernel", "internal/httpapi/links"},
		"internal/httpapi/health":                {"internal/httpapi/kernel"},
		"internal/httpapi/jobs":                  {"internal/httpapi/kernel"},
		"internal/httpapi/keys":                  {"internal/httpapi/kernel"},
		"internal/httpapi/links":                 {"internal/httpapi/kernel"},
		"internal/httpapi/lists":                 {"internal/httpapi/decisions", "internal/httpapi/kernel"},
		"internal/httpapi/reviews":               {"internal/httpapi/decisions", "internal/httpapi/kernel", "internal/httpapi/links"},
		"internal/httpapi/statistics":            {"internal/httpapi/kernel", "internal/httpapi/links"},
		"internal/idempotency":                   {"internal/link"},
		"internal/joblease":                      {"internal/link"},
		"internal/lane":                          {"internal/lane/head", "internal/lane/proxyproto", "internal/lane/strict"},
		"internal/lane/strict":                   {"internal/lane/head"},
		"internal/moderation/bans":               {"internal/abuse", "internal/moderation"},
		"internal/moderation/lists":              {"internal/abuse", "internal/abuse/blocklist", "internal/abuse/lookalike", "internal/moderation"},
		"internal/moderation/moderator":          {"internal/abuse", "internal/moderation", "internal/moderation/bans"},
		"internal/server":                        {"internal/config"},
		"internal/shorten/create":                {"internal/shorten", "internal/shorten/judge"},
		"internal/shorten/edit":                  {"internal/shorten", "internal/shorten/judge"},
		"internal/shorten/find":                  {"internal/shorten"},
		"internal/shorten/judge":                 {"internal/shorten"},
		"internal/shorten/reserve":               {"internal/shorten"},
		"internal/web":                           {"internal/web/asset", "internal/web/chart"},
		"internal/compose/condition":             {"internal/config"},
		"internal/compose/pipeline":              {"internal/config"},
		"internal/compose/stores":                {"internal/config"},
		"internal/datafolder":                    {"internal/config"},
		"internal/listen":                        {"internal/config"},
		"internal/settings":                      {"internal/config"},
		"internal/worker/heal":                   {"internal/worker"},
		"internal/worker/refill":                 {"internal/worker"},
	}
}

// never are imports that the layers would allow and the design forbids: the
// redirect path reaches no SQL, accounts, analytics or moderation, and a backend
// imports contracts only.
func never() map[string][]string {
	hot := []string{"internal/auth", "internal/analytics", "internal/abuse", "internal/moderation", "internal/domains", "internal/clicks/clicklog", "internal/clicks/fold", "internal/clicks/rollup", "database/sql"}
	never := map[string][]string{
		"internal/redirect": hot,
	}
	for _, p := range []string{"internal/lane", "internal/lane/head", "internal/lane/proxyproto", "internal/lane/strict"} {
		never[p] = slices.Concat(hot, []string{"internal/backend/sqlite", "internal/backend/postgres", "internal/backend/redis", "internal/backend/redis/codefilter", "internal/backend/zookeeper", "internal/backend/clickhouse", "internal/backend/kafka", "internal/httpapi"})
	}
	for _, p := range slices.Concat(layers()...) {
		if strings.HasPrefix(p, "internal/backend/") {
			never[p] = []string{"internal/redirect", "internal/shorten", "internal/review"}
		}
	}
	return never
}

// clientModule is what imports call the folder client, which is a module of its own.
const clientModule = "curt.example/client"

// testkit starts services for tests, and no program.
const testkit = "internal/testkit"

func layerOf(p string) int {
	for i, l := range layers() {
		if slices.Contains(l, p) {
			return i
		}
	}
	return -1
}

// imports maps each package directory to what its files outside tests import.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (p == "bin" || p == "bench" || p == "test" || p == "web" || (p != "." && strings.HasPrefix(d.Name(), "."))) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", p), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			dir := path.Dir(p)
			if name == clientModule {
				name = "client"
			}
			found[dir] = append(found[dir], strings.TrimPrefix(name, "curt/"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// subject is the package whose layer counts: a …test package belongs to the one
// it tests, and may import what that one may.
func subject(p string) string {
	if parent := path.Dir(p); strings.HasSuffix(p, "test") && path.Base(parent)+"test" == path.Base(p) {
		return parent
	}
	return p
}

func TestImportsPointDownwards(t *testing.T) {
	all := imports(t)
	if len(all) < 10 {
		t.Fatalf("found only %d packages: the walk is broken", len(all))
	}
	for from, list := range all {
		s := subject(from)
		layer := layerOf(s)
		switch {
		case from == "client":
			for _, to := range list {
				if strings.Contains(strings.Split(to, "/")[0], ".") || strings.HasPrefix(to, "internal/") {
					t.Errorf("client imports %s: it may use the standard library only", to)
				}
			}
			continue
		case s == "internal/config" || s == testkit || strings.HasPrefix(s, testkit+"/"):
			layer = len(layers()) // imports nothing of ours
		case layer < 0:
			t.Errorf("%s has no layer: put it into the table here and in ARCHITECTURE.md", from)
			continue
		}
		for _, to := range list {
			for _, forbidden := range never()[s] {
				if to == forbidden || strings.HasPrefix(to, forbidden+"/") {
					t.Errorf("%s imports %s, which it must never reach", from, to)
				}
			}
			if !strings.HasPrefix(to, "internal/") && !strings.HasPrefix(to, "cmd/") && to != "client" {
				continue
			}
			if to == testkit || strings.HasPrefix(to, testkit+"/") {
				t.Errorf("%s imports %s, which is for tests", from, to)
			}
			if to == s || subject(to) == s || slices.Contains(beside()[s], to) {
				continue
			}
			if l := layerOf(subject(to)); l <= layer {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports point downwards", from, layer, to, l)
			}
			if subject(to) != to && subject(from) == from {
				t.Errorf("%s imports the test package %s", from, to)
			}
		}
	}
}
