package sqlite

// Every statement that a request runs on curt.db. A test asks SQLite for the plan
// of each: none may scan.
const (
	sqlBegin    = `BEGIN IMMEDIATE`
	sqlCommit   = `COMMIT`
	sqlRollback = `ROLLBACK`

	// The columns of fields, in the order of the table of fields (a test holds it to that); the
	// name of a workspace stands for its number.
	fieldColumns = `id, ` + workspaceName + `, domain, code, minted, destination, status, safety, redirect, starts, expires, created, updated,
	max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version`
	workspaceName = `(SELECT name FROM workspaces WHERE workspaces.n = links.workspace)`

	linkColumns       = linkColumnsBefore + `, origin, whole` + extraColumns
	linkColumnsBefore = `n, ` + fieldColumns + `, digest, checksum`
	extraColumns      = `, needs, extra, extra_sum`
	targetColumns     = `domain, code, destination, fallback, starts, expires, version, max_clicks, spent,
	redirect, status, safety, forward_query, no_index, cacheable, checksum, needs`

	// What is written of a row, in the order of rowOf.
	changingColumns = `destination, status, safety, redirect, starts, expires, updated, max_clicks, spent, fallback, forward_query,
	no_index, cacheable, created_by, title, tags, version, digest, checksum, whole, needs, extra, extra_sum`
	storedColumns = `id, workspace, domain, code, minted, destination, status, safety, redirect, starts, expires, created, updated,
	max_clicks, spent, fallback, forward_query, no_index, cacheable, created_by, title, tags, version, digest, checksum, whole, needs, extra,
	extra_sum, origin`
	changingMarks = `?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?`
	storedMarks   = changingMarks + `, ?, ?, ?, ?, ?, ?, ?`

	sqlTargetAt = `SELECT ` + targetColumns + ` FROM links WHERE n = ?`
	sqlLinkAt   = `SELECT ` + linkColumns + ` FROM links WHERE n = ?`
	sqlLinksAt  = `SELECT ` + linkColumns + ` FROM links WHERE n IN `
	sqlLinkByID = `SELECT ` + linkColumns + ` FROM links WHERE workspace = ? AND id = ?`
	sqlAlias    = `SELECT n FROM aliases WHERE domain = ? AND code = ?`

	// The entries beside a name, with what their rows bear: a search that a damaged key leads
	// astray ends beside it.
	aliasBeside   = `SELECT a.domain, a.code, l.domain, l.code, a.n FROM aliases AS a LEFT JOIN links AS l ON l.n = a.n `
	sqlAliasBelow = aliasBeside + `WHERE (a.domain, a.code) < (?, ?) ORDER BY a.domain DESC, a.code DESC LIMIT 1`
	sqlAliasAbove = aliasBeside + `WHERE (a.domain, a.code) > (?, ?) ORDER BY a.domain, a.code LIMIT 1`

	// The row of a name without the index, where that is damaged: it reads every such row.
	sqlAliasRow = `SELECT n FROM links WHERE n < 0 AND domain = ? AND code = ?`

	sqlPlaceTaken = `SELECT 1 FROM links WHERE n = ?`

	sqlWorkspace       = `SELECT n FROM workspaces WHERE name = ?`
	sqlInsertWorkspace = `INSERT INTO workspaces (name) VALUES (?)`
	sqlWorkspaces      = `SELECT n FROM workspaces`

	// One statement decides a counted create: no row where neither the place, nor
	// the id, nor the key is taken.
	sqlInsertLink = `INSERT INTO links (` + storedColumns + `, n) SELECT ` + storedMarks + `, ?
	WHERE NOT EXISTS (SELECT 1 FROM aliases WHERE domain = ? AND code = ?)
	ON CONFLICT DO NOTHING`
	sqlLastAlias   = `SELECT coalesce(max(n), -9223372036854775807 - 1) FROM links WHERE n < 0`
	sqlInsertAlias = `INSERT INTO aliases (domain, code, n) VALUES (?, ?, ?)`

	sqlUpdateLink = `UPDATE links SET (` + changingColumns + `) = (` + changingMarks + `) WHERE n = ?`
	// A move to another workspace. Others than it leave the index by age alone.
	sqlMoveLink = `UPDATE links SET workspace = ?, origin = ? WHERE n = ?`
	// Every column of a damaged row but its key, of which it may have none.
	sqlDiscardLink = `UPDATE links SET (` + storedColumns + `) = (` + storedMarks + `) WHERE n = ?`
	sqlUpdateSpent = `UPDATE links SET spent = ?, whole = ? WHERE n = ?`

	sqlInsertCreates = `INSERT INTO creates (rows) VALUES (?)`
	sqlTrimCreates   = `DELETE FROM creates WHERE seq <= ?`
	sqlLastCreates   = `SELECT coalesce(max(seq), 0) FROM creates`
	sqlCreates       = `SELECT seq, rows FROM creates WHERE seq > ? ORDER BY seq LIMIT ?`
	sqlCreatesLeased = `SELECT next FROM creates_leased WHERE counter = ?`
	sqlLeaseCreates  = `INSERT INTO creates_leased (counter, next) VALUES (?, ?) ON CONFLICT (counter) DO UPDATE SET next = excluded.next`
	sqlRowsBetween   = `SELECT n FROM links WHERE n >= ? AND n < ? AND minted = 1`

	sqlInsertChange = `INSERT INTO changes (domain, code, version, kind, id, workspace, principal, at, region, fields, keys)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''))`
	// What the newest entries take, about.
	sqlEntrySize = `SELECT CAST(coalesce(max(100, avg(60 + length(domain) + length(code) + coalesce(length(fields), 0) + coalesce(length(keys), 0))), 100) AS INTEGER)
	FROM (SELECT * FROM changes ORDER BY seq DESC LIMIT 1000)`
	sqlSlowest = `SELECT name, seq FROM log_followers ORDER BY seq LIMIT 1`
	// The first entry behind a position that is not too old.
	sqlKeptFor     = `SELECT seq FROM changes WHERE seq > ? AND at >= ? ORDER BY seq LIMIT 1`
	sqlTrimChanges = `DELETE FROM changes WHERE seq <= ?`
	sqlFirstChange = `SELECT coalesce(min(seq), 0) FROM changes`
	sqlLastChange  = `SELECT coalesce(max(seq), 0) FROM changes`
	sqlEvents      = `SELECT seq, domain, code, version, kind, id, workspace, principal, at, region, fields, keys FROM changes
	WHERE seq > ? ORDER BY seq LIMIT ?`
	sqlChanges = `SELECT seq, domain, code, version FROM changes WHERE seq > ? ORDER BY seq LIMIT ?`

	sqlTwins = `SELECT ` + linkColumns + ` FROM links
	WHERE workspace = ? AND digest = ? AND expires = ? AND status = 1 AND safety = 1 AND max_clicks = 0
	ORDER BY id LIMIT ?`

	// The page that the entry of a new link will be in; it has no row for most.
	sqlTwinPlace = `SELECT 1 FROM links WHERE workspace = (SELECT n FROM workspaces WHERE name = ?)
	AND digest = ? AND expires = ? AND status = 1 AND safety = 1 AND max_clicks = 0 LIMIT 1`

	// The index by age in its own order, beside the rows that its entries lead to: an entry
	// that says something else than its row is damaged. Before tells whether a walk begins
	// where it should: behind an entry that is not damaged.
	walkEntries   = `SELECT i.n, i.workspace, i.id, t.workspace, t.id, t.status, t.domain FROM links AS i INDEXED BY links_by_age LEFT JOIN links AS t ON t.n = i.n `
	sqlOldest     = walkEntries + `WHERE (i.workspace, i.id) > (?, ?) ORDER BY i.workspace, i.id LIMIT ?`
	sqlOldestPast = walkEntries + `WHERE (i.workspace, i.id) <= (?, ?) ORDER BY i.workspace DESC, i.id DESC LIMIT 1`
	sqlNewest     = walkEntries + `WHERE (i.workspace, i.id) < (?, ?) ORDER BY i.workspace DESC, i.id DESC LIMIT ?`
	sqlNewestPast = walkEntries + `WHERE (i.workspace, i.id) >= (?, ?) ORDER BY i.workspace, i.id LIMIT 1`

	// The same without the index, where that is damaged: it reads every row.
	walkRows      = `SELECT n, workspace, id, workspace, id, status, domain FROM links NOT INDEXED `
	sqlOldestRows = walkRows + `WHERE workspace = ? AND id > ? ORDER BY id LIMIT ?`
	sqlNewestRows = walkRows + `WHERE workspace = ? AND id < ? ORDER BY id DESC LIMIT ?`

	sqlExpired = `SELECT expires, domain, code FROM links
	WHERE expires <> 0 AND status = 1 AND (expires, domain, code) > (?, ?, ?) AND expires <= ?
	ORDER BY expires, domain, code LIMIT ?`
	sqlChosen = `SELECT n, domain, code FROM links WHERE n > ? AND n < 0 AND minted = 0 ORDER BY n LIMIT ?`

	sqlLease  = `INSERT INTO leases (counter, next) VALUES (?, ?) ON CONFLICT (counter) DO UPDATE SET next = excluded.next`
	sqlLeased = `SELECT next FROM leases WHERE counter = ?`

	sqlDayKey       = `SELECT key FROM day_keys WHERE day = ?`
	sqlInsertDay    = `INSERT INTO day_keys (day, key) VALUES (?, ?)`
	sqlOldDay       = `SELECT day FROM day_keys WHERE day < min(?, unixepoch() / 86400) LIMIT 1`
	sqlDropDays     = `DELETE FROM day_keys WHERE day < min(?, unixepoch() / 86400)` // the next may be asked for before midnight
	sqlSetting      = `SELECT value FROM settings WHERE name = ?`
	sqlAddSetting   = `INSERT INTO settings (name, value) VALUES (?, ?)`
	sqlHasLeases    = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'leases'`
	sqlLastCounted  = `SELECT max(n) FROM links WHERE n >= ? AND n < ?`
	sqlRowsFrom     = `SELECT ` + linkColumns + ` FROM links WHERE n > ? ORDER BY n LIMIT ?`
	sqlQuickCheck   = `PRAGMA quick_check(10)`
	sqlCountLinks   = `SELECT count(*) FROM links`
	sqlTables       = `SELECT count(*) FROM sqlite_schema`
	sqlSchema       = `SELECT max(version_id) FROM goose_db_version WHERE is_applied`
	sqlNeeds        = `PRAGMA user_version`
	sqlHoldsDays    = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'day_keys'`
	sqlForgetDays   = `DELETE FROM day_keys`
	sqlShortWait    = `PRAGMA busy_timeout = 250`
	sqlCacheSize    = `PRAGMA cache_size`
	sqlSetCacheSize = `PRAGMA cache_size = `
	sqlWALSize      = `PRAGMA wal_checkpoint(NOOP)`
	sqlCheckpoint   = `PRAGMA wal_checkpoint(PASSIVE)`
	sqlTruncateWAL  = `PRAGMA wal_checkpoint(TRUNCATE)`
)
