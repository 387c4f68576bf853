// Comma-separated values (RFC 4180), written and read as the program's own exports are.

// What a spreadsheet would run begins with an apostrophe, which reading takes away again.
const formula = /^[=+\-@\t\r]/

function cell(text: string): string {
  const harmless = formula.test(text) ? "'" + text : text
  return /[",\n\r]|^\s/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
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

// trimmed is a cell without the spaces around it and the apostrophe of an export.
export function trimmed(text: string): string {
  const s = text.trim()
  return s.startsWith("'") && formula.test(s.slice(1)) ? s.slice(1) : s
}
