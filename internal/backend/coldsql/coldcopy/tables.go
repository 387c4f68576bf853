package coldcopy

import "slices"

// kind is what a column holds, in both databases.
type kind uint8

const (
	number   kind = iota
	flag          // 0 or 1 in SQLite
	word          // a text that PostgreSQL keeps as text: UTF-8, without NUL
	text          // what people write, with any bytes
	octets        // a blob
	id            // 16 bytes
	optional      // an id, or none
	words         // separated by spaces in SQLite
)

type column struct {
	name string
	kind kind
}

// table is one that both databases have, with columns in one order. Columns that differ have their
// expression; all others are read and written by their names.
type table struct {
	name    string
	key     int // so many columns at the front are its key
	columns []column

	sqlite, postgres map[string]string // how a column is read there, where not by its name
	where            string            // of SQLite: rows that are moved
	insert           string            // columns and values of PostgreSQL, where not one for one
	numbers          string            // a column whose identity goes on behind the highest number
}

// tables are those of accounts and moderation, and what else is given away once, in an order in
// which each finds what it refers to.
func tables() []table {
	return append([]table{
		{name: "leases", key: 1, where: "counter <> 'generation'", columns: []column{{"counter", word}, {"next", number}}},
		{name: "day_keys", key: 1, columns: []column{{"day", number}, {"key", octets}}},
		{name: "workspaces", key: 1, columns: []column{{"name", word}, {"plan", word}}},
		{
			name: "keys", key: 1,
			columns: []column{
				{"id", id}, {"workspace", word}, {"name", text}, {"scopes", words}, {"created", number}, {"created_by", word}, {"expires", number}, {"used", number},
			},
			sqlite: map[string]string{"workspace": "(SELECT name FROM workspaces WHERE n = keys.workspace)"},
		},
		{name: "key_secrets", key: 1, columns: []column{{"sum", octets}, {"key", id}, {"until", number}}},
		{name: "kept_shares", key: 1, columns: []column{{"key", id}}},
		{name: "shares", key: 2, columns: []column{{"domain", word}, {"code", word}, {"workspace", word}, {"secret", octets}}},
		{
			name: "idempotency", key: 2,
			columns: []column{
				{"caller", word}, {"name", text}, {"request", octets}, {"id", id}, {"domain", word}, {"code", word}, {"minted", flag}, {"found", flag}, {"created", number},
			},
		},
		journal(),
		cases(),
		{
			name: "case_notes", key: 1, numbers: "n",
			columns: []column{{"n", number}, {"case_id", id}, {"at", number}, {"category", number}, {"text", text}, {"contact", text}, {"erased", flag}},
		},
		{name: "case_networks", key: 3, columns: []column{{"case_id", id}, {"day", number}, {"digest", number}}},
		appeals(),
		{name: "followers", key: 1, columns: []column{{"name", word}, {"position", number}}},
		destinations(),
	}, others()...)
}

// others are those that nothing refers to.
func others() []table {
	return []table{
		{name: "list_lines", key: 2, columns: []column{{"kind", word}, {"name", word}, {"sequence", number}}},
		{name: "limits", key: 2, columns: []column{{"kind", word}, {"bucket", number}, {"full_at", number}, {"size", number}, {"changed", number}}},
		{name: "creator_minutes", key: 2, columns: []column{{"creator", number}, {"minute", number}, {"links", number}}},
		{
			name: "jobs", key: 1,
			columns: []column{
				{"id", id},
				{"workspace", word},
				{"kind", word},
				{"created_by", word},
				{"options", text},
				{"size", number},
				{"uploaded", number},
				{"state", word},
				{"progress", text},
				{"error", text},
				{"result", number},
				{"stored", number},
				{"input", optional},
				{"holder", word},
				{"fence", number},
				{"until", number},
				{"created", number},
				{"updated", number},
				{"expires", number},
			},
		},
		{name: "job_chunks", key: 3, columns: []column{{"job", id}, {"part", number}, {"start", number}, {"data", octets}}},
	}
}

// cases have an array in PostgreSQL for five columns of SQLite.
func cases() table {
	return table{
		name: "cases", key: 1,
		columns: []column{
			{"id", id},
			{"link", id},
			{"domain", word},
			{"code", word},
			{"workspace", word},
			{"host", word},
			{"sources", number},
			{"score", number},
			{"opened", number},
			{"due", number},
			{"reports", number},
			{"phishing", number},
			{"malware", number},
			{"spam", number},
			{"illegal", number},
			{"other", number},
			{"first", number},
			{"last", number},
			{"closed", number},
			{"decided_by", word},
			{"decided", number},
			{"sequence", number},
		},
		postgres: map[string]string{
			"phishing": "by_category[1]", "malware": "by_category[2]", "spam": "by_category[3]", "illegal": "by_category[4]", "other": "by_category[5]",
		},
		insert: `(id, link, domain, code, workspace, host, sources, score, opened, due, reports, by_category, first, last, closed, decided_by, decided, sequence)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, ARRAY[$12, $13, $14, $15, $16]::bigint[], $17, $18, $19, $20, $21, $22)`,
	}
}

// journal returns that of moderation.
func journal() table {
	return table{
		name: "journal", key: 1,
		columns: []column{
			{"sequence", number},
			{"at", number},
			{"kind", word},
			{"name", word},
			{"link", optional},
			{"action", word},
			{"safety", number},
			{"score", number},
			{"actor", word},
			{"reason", text},
			{"reason_salt", octets},
			{"reason_hash", octets},
			{"evidence", text},
			{"evidence_salt", octets},
			{"evidence_hash", octets},
			{"hash", octets},
		},
	}
}

// appeals returns those against decisions.
func appeals() table {
	return table{
		name: "appeals", key: 1,
		columns: []column{
			{"id", id},
			{"link", id},
			{"domain", word},
			{"code", word},
			{"token", octets},
			{"at", number},
			{"made_by", word},
			{"against", number},
			{"reason", text},
			{"erased", flag},
			{"answered", number},
			{"answered_by", word},
			{"safety", number},
			{"answer", text},
			{"sequence", number},
		},
	}
}

// destinations returns those of refused creates.
func destinations() table {
	return table{
		name: "destinations", key: 1,
		columns: []column{
			{"id", id},
			{"workspace", word},
			{"digest", octets},
			{"url", text},
			{"created_by", word},
			{"network", number},
			{"score", number},
			{"evidence", text},
			{"refused", number},
			{"first", number},
			{"last", number},
			{"decided", number},
			{"everyone", flag},
			{"decided_at", number},
			{"sequence", number},
			{"erased", flag},
		},
	}
}

// Apart are the tables of curt.db that are not copied row by row, and why. A table that is neither
// here nor copied would be forgotten by a move: a test finds it.
func Apart() map[string]string {
	return map[string]string{
		"links":            "moved separately, with its change log",
		"aliases":          "where links lie in curt.db",
		"changes":          "of the folder; the database begins its own",
		"creates":          "as changes",
		"creates_leased":   "as changes",
		"log_followers":    "positions in the logs of the folder",
		"job_leases":       "the folder's server has none in a fleet",
		"journal_progress": "of the folder's server; each server of a fleet has its own",
		"settings":         "the key of codes is moved separately",
		"reservations":     "end after five minutes",
		"unused_keys":      "the fleet generates its own, of ids that are leased later",
		"used_keys":        "of the folder's server",
		"goose_db_version": "of the file",
		"sqlite_sequence":  "of the file",
	}
}

// Copied are the names of the tables that are copied.
func Copied() []string {
	var names []string
	for _, t := range tables() {
		names = append(names, t.name)
	}
	slices.Sort(names)
	return names
}
