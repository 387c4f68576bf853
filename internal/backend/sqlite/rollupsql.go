package sqlite

import (
	"strings"
)

// Statements on clicks.db.
const (
	sqlBeginRead = `BEGIN DEFERRED`

	sqlState    = `SELECT generation, segment, place FROM state WHERE one = 1`
	sqlSetState = `UPDATE state SET generation = ?, segment = ?, place = ? WHERE one = 1`

	sqlTotal = `SELECT n, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked
		FROM links WHERE domain = ? AND code = ?`

	// A row value among others (IN) would be a walk over the table.
	sqlTotals    = `WITH asked (d, c) AS (VALUES `
	sqlTotalsEnd = `) SELECT domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked
		FROM asked CROSS JOIN links ON domain = d AND code = c`

	sqlTotalsFrom = `SELECT n, domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked
		FROM links WHERE n > ? ORDER BY n LIMIT ?`
	sqlRollupsFrom = `SELECT id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors
		FROM rollups WHERE id > ? ORDER BY id LIMIT ?`
	sqlKeyOf = `SELECT domain, code FROM links WHERE n = ?`

	// One statement adds many links: parsing, binding and stepping once per link
	// would cost more than the rows.
	sqlAddTotals = `INSERT INTO links (domain, code, clicks, humans, previews, fallbacks, refused, first_seen, last_clicked)
		VALUES `
	sqlAddTotalsEnd = ` ON CONFLICT (domain, code) DO UPDATE SET
		clicks = clicks + excluded.clicks, humans = humans + excluded.humans,
		previews = previews + excluded.previews, fallbacks = fallbacks + excluded.fallbacks,
		refused = refused + excluded.refused,
		first_seen = min(first_seen, excluded.first_seen), last_clicked = max(last_clicked, excluded.last_clicked)
		RETURNING n, domain, code`

	sqlPackedRows = `SELECT id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors
		FROM rollups WHERE id IN `

	sqlPutRows = `INSERT OR REPLACE INTO rollups
		(id, clicks, humans, previews, fallbacks, refused, minutes, dimensions, visitors) VALUES `

	// What is read of rows: the costly columns only where wanted, because SQLite does
	// not touch the pages of a blob that is not asked for.
	sqlRowColumns     = `id, clicks, humans, previews, fallbacks, refused, minutes, NULL, NULL`
	sqlVisitorColumns = `id, clicks, humans, previews, fallbacks, refused, minutes, NULL, visitors`
	sqlSumColumns     = `id, dimensions`

	sqlBetween = ` FROM rollups WHERE id BETWEEN ? AND ?`
	sqlAmong   = ` FROM rollups WHERE id IN `
	sqlInOrder = ` ORDER BY id`
)

const (
	totalColumns = 9
	rowColumns   = 9

	// rowsAtOnce is how many rows one statement takes at most. Beyond it the
	// saving per row is below a tenth.
	rowsAtOnce = 64

	// rowsBetweenRests is the same where there are pauses: about 0.3 ms.
	rowsBetweenRests = 16
)

// groups returns n groups of placeholders: (?,?),(?,?).
func groups(n, width int) string {
	group := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	return strings.TrimSuffix(strings.Repeat(group+",", n), ",")
}

// statements are the texts of the statements that take many rows, by the binary
// logarithm of how many.
type statements struct{ totals, read, put []string }

func newStatements() (s statements) {
	for n := 1; n <= rowsAtOnce; n *= 2 {
		s.totals = append(s.totals, sqlAddTotals+groups(n, totalColumns)+sqlAddTotalsEnd)
		s.read = append(s.read, sqlPackedRows+groups(1, n))
		s.put = append(s.put, sqlPutRows+groups(n, rowColumns))
	}
	return s
}
