package clickhouse_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/analytics"
	"curt/internal/analytics/analyticstest"
	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/useragent"
	"curt/internal/link"
	"curt/internal/testkit"
)

// All tests share a server, and have a database each.
func TestStore(t *testing.T) {
	s := testkit.StartClickHouse(t)
	for name, test := range map[string]func(*testing.T, *testkit.ClickHouse){
		"scripts":                                    runScripts,
		"a block that is inserted again":             insertAgain,
		"a block that only some tables got":          completeBlock,
		"blocks that cannot be inserted":             refuseBlocks,
		"hostile clicks":                             takeHostileClicks,
		"what is off is found and rebuilt":           rebuildWhatIsOff,
		"clicks in the last second of a day":         countLastSecond,
		"clicks go when they are no longer kept":     expireClicks,
		"a server that does not answer":              askNobody,
		"visitors that are too many are not counted": leaveUncounted,
		"how far clicks have come":                   keepWatermarks,
		"who may hold clicks is asked":               knowSenders,
		"who could not be heard is not gone":         excuse,
		"how far they have come is asked again":      tellAgain,
		"what failed is not told as done":            failTogether,
		"days are settled":                           settleDays,
		"a day that is settled while it is clicked":  settleTwice,
		"visitors of settled days":                   settleVisitors,
		"clicks one by one":                          showClicks,
		"each replica has an identity":               knowReplicas,
		"queries go to one of several replicas":      askReplicas,
		"a database has one name":                    refuseTwins,
		"a replica alone that was not filled":        leaveAlone,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// open returns a store whose clicks are kept although the tests' are of long ago.
func open(t *testing.T, s *testkit.ClickHouse, database string) *clickhouse.Store {
	t.Helper()
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: s.URL(database)})
	if err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "SYSTEM STOP TTL MERGES")
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

type dayKeys struct{}

func (dayKeys) DayKey(_ context.Context, day time.Time) (key [16]byte, err error) {
	binary.LittleEndian.PutUint64(key[:], uint64(day.Unix()))
	return key, nil
}

// enriched takes clicks through ring, capture and log, and returns what comes out. The time of the bubble stands still while
// anything is done: no click has to go on without the key of its day.
func enriched(t *testing.T, raws []clicks.Raw) (rows []clickdb.Row) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { rows = throughCapture(t, raws) })
	return rows
}

func throughCapture(t *testing.T, raws []clicks.Raw) (rows []clickdb.Row) {
	t.Helper()
	log, err := clicklog.Open(clicklog.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	ring := capture.NewRing(capture.RingConfig{Bytes: 4 << 20})
	for i := range raws {
		if !ring.Record(&raws[i]) {
			t.Fatal("the ring is full")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it takes what is in the ring all the same
	if err := capture.New(capture.Config{Ring: ring, Log: log, Keys: dayKeys{}, Geo: analyticstest.Places{}}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	list, reader := useragent.NewClassifier(), log.Read(clicklog.Position{})
	defer reader.Close()
	for {
		block, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := block.Events(func(e *clicklog.Event) error {
			rows = append(rows, clickdb.Row{ID: e.ID, Key: clicklog.LinkKey(e.Key), Click: e.Click(list)})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(rows) != len(raws) {
		t.Fatalf("%d of %d clicks came out of the log", len(rows), len(raws))
	}
	return rows
}

func runScripts(t *testing.T, s *testkit.ClickHouse) {
	analyticstest.Run(t, "../../analytics/analyticstest/testdata", func(t *testing.T) analyticstest.System {
		store, block := open(t, s, s.Database(t)), 0
		return analyticstest.System{Reader: store, Load: func(t *testing.T, raws []clicks.Raw) {
			rows := enriched(t, raws)
			for range 2 { // every block comes twice
				if err := store.Insert(t.Context(), fmt.Sprintf("clicks:0:%d", block), rows); err != nil {
					t.Fatal(err)
				}
			}
			block++
		}}
	})
}

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// rows are n clicks of people and programs on 40 links of two workspaces, over two hours.
func rows(n int) []clickdb.Row {
	all := make([]clickdb.Row, n)
	for i := range all {
		all[i] = clickdb.Row{
			ID: clicks.EventID{Instance: 7, Sequence: uint64(i)}, Key: link.Key{Domain: "go.example", Code: link.Code(fmt.Sprint("c", i%40))},
			Workspace: fmt.Sprint("w", i%2), Click: clicks.Click{
				Time: noon.Add(time.Duration(i) * 2 * time.Hour / time.Duration(n)), Outcome: clicks.Redirected, Visitor: uint64(i%97 + 1),
				Country: "NP", Device: "desktop", Browser: "Firefox", OS: "Linux", Trigger: clicks.TriggerLink,
				ReferrerHost: fmt.Sprint("r", i%5, ".example"), Bot: i%10 == 0,
			},
		}
		switch i % 50 {
		case 1:
			all[i].Preview = true
		case 2:
			all[i].Outcome = clicks.Refused
		case 3:
			all[i].Outcome = clicks.FellBack
		case 4:
			all[i].Outcome = clicks.Orphan
		}
	}
	return all
}

func insert(t *testing.T, store *clickhouse.Store, token string, rows []clickdb.Row) {
	t.Helper()
	if err := store.Insert(t.Context(), token, rows); err != nil {
		t.Fatal(err)
	}
}

// contents are the sums of every table, by which two states of a database are compared.
func contents(t *testing.T, s *testkit.ClickHouse, database string) string {
	t.Helper()
	text := "clicks " + s.Exec(t, "SELECT count(), sum(sequence), uniqExact(sequence) FROM "+database+".clicks") + "\n"
	for _, table := range []string{"minutes", "quarters", "days"} {
		text += table + " " + s.Exec(t, `SELECT sum(clicks), sum(humans), sum(previews), sum(fallbacks), sum(refused),
			uniqCombined64IfMerge(14)(visitors), min(first_seen), max(last_clicked) FROM `+database+"."+table) + "\n"
	}
	return text
}

func insertAgain(t *testing.T, s *testkit.ClickHouse) {
	database := s.Database(t)
	store := open(t, s, database)
	block := rows(1_000)
	insert(t, store, "clicks:0:0-999", block)
	once := contents(t, s, database)
	for range 3 {
		insert(t, store, "clicks:0:0-999", block)
	}
	open(t, s, database) // the tables are there already
	if again := contents(t, s, database); again != once {
		t.Errorf("once:\n%sagain:\n%s", once, again)
	}
	insert(t, store, "clicks:1:0-999", block)
	if other := contents(t, s, database); other == once {
		t.Error("a block with a token of its own was dropped")
	}

	// The control: a table whose view has no window counts again, and shows that the
	// comparison sees it.
	for _, table := range []string{"clicks", "minutes", "quarters", "days"} {
		s.Exec(t, fmt.Sprintf("ALTER TABLE %s.%s MODIFY SETTING non_replicated_deduplication_window = 0", database, table))
		before := contents(t, s, database)
		insert(t, store, "clicks:0:0-999", block)
		if after := contents(t, s, database); after == before {
			t.Errorf("without a window, %s was not counted again", table)
		}
		s.Exec(t, fmt.Sprintf("ALTER TABLE %s.%s MODIFY SETTING non_replicated_deduplication_window = 1000", database, table))
		insert(t, store, "clicks:0:0-999", block) // remembered from here on
	}
}

func completeBlock(t *testing.T, s *testkit.ClickHouse) {
	whole, part := s.Database(t), s.Database(t)
	block := rows(1_000)
	insert(t, open(t, s, whole), "clicks:0:0", block)
	store := open(t, s, part)
	for _, view := range []string{"days_view", "quarters_view"} {
		s.Exec(t, "DETACH TABLE "+part+"."+view)
	}
	insert(t, store, "clicks:0:0", block)
	for _, view := range []string{"days_view", "quarters_view"} {
		s.Exec(t, "ATTACH TABLE "+part+"."+view)
	}
	if contents(t, s, whole) == contents(t, s, part) {
		t.Fatal("the views that were away got the block")
	}
	insert(t, store, "clicks:0:0", block)
	if want, got := contents(t, s, whole), contents(t, s, part); want != got {
		t.Errorf("at once:\n%sin two turns:\n%s", want, got)
	}
}

func refuseBlocks(t *testing.T, s *testkit.ClickHouse) {
	store := open(t, s, s.Database(t))
	for name, test := range map[string]struct {
		token string
		rows  []clickdb.Row
	}{"no token": {"", rows(1)}, "too many": {"t", make([]clickdb.Row, clickdb.MaxBlock+1)}} {
		if err := store.Insert(t.Context(), test.token, test.rows); !errors.Is(err, clickdb.ErrBlock) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := store.Insert(t.Context(), "t", nil); err != nil {
		t.Errorf("no rows: %v", err)
	}
}

// Whatever strangers and clocks bring is stored and found again, and breaks nothing.
func takeHostileClicks(t *testing.T, s *testkit.ClickHouse) {
	store := open(t, s, s.Database(t))
	texts := []string{"'; DROP TABLE clicks; --", `\'`, "\\", "a\tb\nc\x00d", "{code:String}", "\xff\xfe", "ünï", "*", "%_"}
	var block []clickdb.Row
	for i, text := range texts {
		block = append(block, clickdb.Row{
			Key: link.Key{Domain: link.Domain(text), Code: link.Code(text)}, Workspace: text, ID: clicks.EventID{Sequence: uint64(i)},
			Click: clicks.Click{Time: noon, Outcome: clicks.Redirected, ReferrerHost: text, BotName: text, Visitor: 1},
		})
	}
	wrong := []time.Time{{}, time.Unix(-1<<40, 0), time.Unix(1<<40, 0), time.UnixMilli(-1)}
	for day := range 101 { // more days than a block may have partitions by default
		wrong = append(wrong, noon.AddDate(0, 0, -day))
	}
	for _, at := range wrong {
		block = append(block, clickdb.Row{Key: link.Key{Code: "clock"}, Click: clicks.Click{Time: at, Outcome: clicks.Redirected}})
	}
	block = append(block, clickdb.Row{Key: link.Key{Code: "odd"}, Click: clicks.Click{Time: noon, Outcome: 200}})
	insert(t, store, texts[0], block)
	for _, text := range texts {
		k := link.Key{Domain: link.Domain(text), Code: link.Code(text)}
		for _, k := range []link.Key{k, clicks.GroupKey(text)} {
			want := uint64(1)
			if text == "*" {
				want = 2 // as a host that no link has, it is where groups lie
			}
			totals, err := store.Totals(t.Context(), analytics.Scope{Key: k}, noon.Add(time.Hour))
			if err != nil || totals.Clicks != want {
				t.Errorf("%q: %d clicks, %v", k, totals.Clicks, err)
			}
			list, err := store.Clicks(t.Context(), []link.Key{{Code: "never"}, k})
			if err != nil || list[0] != 0 || list[1] != want {
				t.Errorf("%q: %v in the list, %v", k, list, err)
			}
		}
		top, err := store.Top(t.Context(), analytics.Scope{Key: k}, 5, noon.Add(time.Hour), clicks.ReferrerHost)
		if err != nil || len(top[0]) != 1 || top[0][0].Value != text {
			t.Errorf("%q: %v, %v", text, top, err)
		}
	}
	clock, err := store.Totals(t.Context(), analytics.Scope{Key: link.Key{Code: "clock"}}, noon)
	if err != nil || clock.Clicks != uint64(len(wrong)) {
		t.Errorf("%d of %d clicks of clocks that are wrong, %v", clock.Clicks, len(wrong), err)
	}
}
