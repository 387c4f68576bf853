package coldsql

import (
	"strings"
	"sync"
)

// Dialect is how a database says what databases say differently. Statements of this package have
// the words below in braces.
type Dialect struct {
	words *strings.Replacer
	said  sync.Map // statement → the same in this dialect
}

// SQLite numbers parameters with ?, has integers for booleans, and computed columns to rank cases
// by. One writer at a time makes locks needless.
func SQLite() *Dialect {
	return dialect(
		"$", "?", "{true}", "1", "{false}", "0", "{lock}", "", "{lock k}", "", "{skip locked}", "", "{greatest}", "max", "{least}", "min",
		"{join}", "CROSS JOIN", "{workspace}", "n",
		"{by journal_by_entity}", "INDEXED BY journal_by_entity", "{by journal_bans}", "INDEXED BY journal_bans",
		"{by cases_closed_by}", "INDEXED BY cases_closed_by", "{by journal_verdicts}", "INDEXED BY journal_verdicts",
		"{phishing}", "phishing", "{malware}", "malware", "{spam}", "spam", "{illegal}", "illegal", "{other}", "other",
		"{open}", "open", "{by due}", "appealed_first", "{by score}", "gravest_first", "{by reports}", "loudest_first", "{by newest}", "newest_first",
		"{chain}", "SELECT 1", "{now}", "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
	)
}

// PostgreSQL locks the rows that a transaction has looked at before it changes them.
func PostgreSQL() *Dialect {
	return dialect(
		"{true}", "true", "{false}", "false", "{lock}", "FOR UPDATE", "{skip locked}", "FOR UPDATE SKIP LOCKED", "{lock k}", "FOR UPDATE OF k", "{greatest}", "greatest", "{least}", "least",
		"{join}", "JOIN", "{workspace}", "name",
		"{by journal_by_entity}", "", "{by journal_bans}", "", "{by cases_closed_by}", "", "{by journal_verdicts}", "",
		"{phishing}", "by_category[1]", "{malware}", "by_category[2]", "{spam}", "by_category[3]", "{illegal}", "by_category[4]", "{other}", "by_category[5]",
		"{open}", "(closed = 0)", "{by due}", "-((sources & 4) >> 2)::bigint", "{by score}", "-score::bigint",
		"{by reports}", "-reports", "{by newest}", "-opened",
		"{chain}", "SELECT n FROM journal_end WHERE n = 1 FOR UPDATE", // the chain of the journal has one order
		"{now}", "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
	)
}

func dialect(words ...string) *Dialect { return &Dialect{words: strings.NewReplacer(words...)} }

// SQL returns a statement in the words of the dialect.
func (d *Dialect) SQL(statement string) string {
	if said, ok := d.said.Load(statement); ok {
		return said.(string)
	}
	said := d.words.Replace(statement)
	d.said.Store(statement, said)
	return said
}

// SQLs returns statements by their names in the words of the dialect.
func (d *Dialect) SQLs(all map[string]string) map[string]string {
	for name, statement := range all {
		all[name] = d.SQL(statement)
	}
	return all
}

// Statements are those of requests, by name, for tests of their plans: each must find what it looks
// for by an index.
func (d *Dialect) Statements() map[string]string {
	return d.SQLs(map[string]string{
		"find key": sqlFindKey, "key": sqlKey, "keys": sqlKeys, "keys of workspace": sqlWorkspaceKeys, "insert key": sqlInsertKey,
		"insert secret": sqlInsertSum, "secret": sqlSum, "drop key": sqlDropKey, "drop secrets": sqlDropSums,
		"drop rotated": sqlDropRotated, "end secrets": sqlEndSums, "touch key": sqlTouchKey, "vouches": sqlVouches,
		"share": sqlShare, "keep share": sqlKeepShare, "drop share": sqlDropShare,
		"record": sqlRecord, "claim": sqlClaim, "change record": sqlChangeRecord, "drop record": sqlDropRecord, "forget records": sqlForgetRecords,
		"acquire job": sqlAcquireJob, "job fence": sqlJobFence, "renew job": sqlRenewJob, "release job": sqlReleaseJob,
		"follower": sqlFollower, "move follower": sqlMoveFollower, "forget follower": sqlForgetFollower,
		"insert entry": sqlInsertEntry, "last entry": sqlLastEntry, "entries": sqlEntries, "newest entries": sqlNewestEntries,
		"entries of": sqlEntriesOf, "entries by": sqlEntriesBy, "entries of both": sqlEntriesOfBoth,
		"standing": sqlStanding, "erase entry": sqlEraseEntry,
		"end": sqlEnd, "put line": sqlPutLine, "drop line": sqlDropLine, "lines": sqlLines,
	})
}

// Lists are the statements of lists of entries, which PostgreSQL may sort for.
func (d *Dialect) Lists() map[string]string {
	return d.SQLs(map[string]string{"bans": sqlBans, "verdicts": sqlVerdicts})
}
