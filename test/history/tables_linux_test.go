package history_test

import (
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// tables is DynamoDB under a fleet, behind a proxy that all servers ask. DynamoDB Local throttles
// nobody and does not fail by itself.
type tables struct {
	*testkit.DynamoDB
	proxy *testkit.DynamoDBProxy

	freely atomic.Bool // creates are stored without their condition
}

// tableOfLinks is the table that the fleet has its links in.
const tableOfLinks = "curt"

func startTables(t *testing.T) *tables {
	t.Helper()
	d := testkit.StartDynamoDB(t, false)
	all := &tables{DynamoDB: d, proxy: testkit.StartDynamoDBProxy(t, d)}
	all.proxy.Rewrite = func(r *testkit.DynamoDBRequest) bool { return all.freely.Load() && unconditional(r) }
	return all
}

// unconditional removes the condition of a create.
func unconditional(r *testkit.DynamoDBRequest) (changed bool) {
	remove := func(put any) {
		body, _ := put.(map[string]any)
		if body["TableName"] == tableOfLinks && body["ConditionExpression"] != nil {
			delete(body, "ConditionExpression")
			delete(body, "ReturnValuesOnConditionCheckFailure")
			changed = true
		}
	}
	switch r.Operation {
	case "PutItem":
		remove(r.Body)
	case "TransactWriteItems":
		all, _ := r.Body["TransactItems"].([]any)
		for _, one := range all {
			writes, _ := one.(map[string]any)
			remove(writes["Put"])
		}
	}
	return changed
}

// gatherTables starts a fleet over DynamoDB, whose accounts are in PostgreSQL.
func gatherTables(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, tables: startTables(t)}
	f.env = []string{
		"CURT_LINKS=" + testkit.DynamoDBURL(tableOfLinks, f.tables.proxy.URL),
		"CURT_ACCOUNTS=" + testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t),
		"CURT_CODES=range", "CURT_UNKNOWN_LIMIT=off",
		"AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "AWS_EC2_METADATA_DISABLED=true",
	}
	curttest.Migrate(t, f.env)
	f.startAll()
	return f
}

// TestHistoryOverDynamoDB is TestHistory over DynamoDB, which throttles, fails before and after it did
// what was asked, and is away.
func TestHistoryOverDynamoDB(t *testing.T) {
	testkit.Faults(t)
	f := gatherTables(t)
	t.Run("control: creates without their condition", f.freeCreates)
	f.history(t)
}

// freeCreates is the control over DynamoDB: where a create has no condition codes are handed out twice,
// and the history shows it.
func (f *fleet) freeCreates(t *testing.T) {
	f.tables.freely.Store(true)
	defer f.tables.freely.Store(false)
	f.mustNotLinearize(t, func(run string) *crowd { return f.crowd(t, "freely"+run) }) // two have one code
}

// tableFaults is every fault that servers over DynamoDB survive.
func (f *fleet) tableFaults() []func() {
	return []func(){f.throttled, f.killed, f.failing, f.slept, f.tableHung, f.tableAway}
}

// throttled: DynamoDB accepts nothing, and says so by each of its errors.
func (f *fleet) throttled() {
	f.t.Helper()
	all := testkit.DynamoDBThrottles()
	f.broken("the table is throttled", func(testkit.DynamoDBRequest) *testkit.DynamoDBAnswer { return all[rand.IntN(len(all))] })
}

// failing: a third of all requests is refused, fails, or is done and has no answer.
func (f *fleet) failing() {
	f.t.Helper()
	all := testkit.DynamoDBTroubles()
	f.broken("a third of all requests to the table fails", func(testkit.DynamoDBRequest) *testkit.DynamoDBAnswer {
		if rand.IntN(3) > 0 {
			return nil
		}
		return all[rand.IntN(len(all))]
	})
}

// tableAway: connections end without an answer, at first some of them after the request was done.
func (f *fleet) tableAway() {
	f.t.Helper()
	var asked atomic.Int64
	f.broken("the table is away", func(testkit.DynamoDBRequest) *testkit.DynamoDBAnswer {
		return &testkit.DynamoDBAnswer{After: asked.Add(1) < 20}
	})
}

// broken answers requests by a function for some seconds.
func (f *fleet) broken(name string, answer func(testkit.DynamoDBRequest) *testkit.DynamoDBAnswer) {
	f.t.Helper()
	f.fault(name, -1, heard, func() {
		end := f.tables.proxy.Breaks(answer)
		time.Sleep(lasts(3 * time.Second))
		end()
	})
}

// tableHung: DynamoDB takes connections and answers nobody; what it was asked it does later.
func (f *fleet) tableHung() {
	f.t.Helper()
	f.fault("the table stands still", -1, heard, func() {
		f.signal(f.tables.Pid, syscall.SIGSTOP)
		time.Sleep(lasts(3 * time.Second))
		f.signal(f.tables.Pid, syscall.SIGCONT)
	})
}
