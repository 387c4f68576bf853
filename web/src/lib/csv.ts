// Comma-separated values (RFC 4180), written and read as the program's own exports are.

// Before what a spreadsheet would run stands an apostrophe, which reading takes away again:
// at the beginning, and behind what separates fields for those who open the file with
// semicolons or tabs. internal/exchange/harmless.go does the same and says why.
const run = String.raw`(?=(?:(?![\t\n\r])[\p{Z}\p{Cc}\p{Cf}'"])*[=+\-@＝＋－＠﹦﹢﹣﹫])`
const formulas = new RegExp(String.raw`(^|[;|\t\n\r])${run}`, 'gu')
const quieted = new RegExp(String.raw`(^|[;|\t\n\r])'${run}`, 'gu')
const stripped = /^'*[\t\n\r]/

export const harmless = (text: string): string => (stripped.test(text) ? "'" : '') + text.replace(formulas, "$1'")

export const harmful = (text: string): string => (text.startsWith("'") && stripped.test(text) ? text.slice(1) : text).replace(quieted, '$1')

function cell(text: string): string {
  const quiet = harmless(text)
  return /[",\n\r]|^\s/.test(quiet) ? `"${quiet.replaceAll('"', '""')}"` : quiet
}

export const csvRow = (cells: string[]): string => cells.map(cell).join(',') + '\n'

export const quotes = (text: string): number => text.split('"').length - 1

// delimiter is the sign that the first line has most of.
export function delimiter(text: string): string {
  let best = ','
  for (const sign of ';\t') if (text.split(sign).length > text.split(best).length) best = sign
  return best
}

// cellsOf reads one row, whose quotes are even; undefined: it is none. A quote begins a
// field or stands in one that is quoted, twice.
export function cellsOf(text: string, comma: string): string[] | undefined {
  const row = text.replace(/\r?\n$/, '')
  const cells: string[] = []
  let at = 0
  for (;;) {
    if (row[at] !== '"') {
      const end = row.indexOf(comma, at)
      const plain = row.slice(at, end < 0 ? row.length : end)
      if (plain.includes('"')) return undefined
      cells.push(plain)
      if (end < 0) return cells
      at = end + 1
      continue
    }
    let value = ''
    for (at++; ;) {
      const end = row.indexOf('"', at)
      if (end < 0) return undefined
      value += row.slice(at, end)
      at = end + 1
      if (row[at] !== '"') break
      value += '"'
      at++
    }
    cells.push(value)
    if (at >= row.length) return cells
    if (row[at] !== comma) return undefined
    at++
  }
}

// trimmed is a cell without the spaces around it and the apostrophes of an export.
export const trimmed = (text: string): string => harmful(text.trim())
