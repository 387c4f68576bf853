// What a file holds, row by row. Every row that cannot be read has a reason of its own,
// and the next one is read all the same. No cell is ever evaluated.
import { cellsOf, delimiter, quotes, trimmed } from './csv'
import { understand, withoutHeader, type ImportField } from './columns'
import { Lines, maxRow, type Line } from './lines'
import { Faulty, skip, wantedOf, type Fault, type Values, type Wanted } from './record'

export type Unreadable = NonNullable<Line['wrong']> | 'quote' | 'columns' | 'json' | Fault
export interface Row { line: number, bytes: number, text: string, wanted?: Wanted, skipped?: true, wrong?: Unreadable, value?: string }

// Understood is how a file is read: of CSV which column is which field.
export interface Understood { format: 'csv' | 'jsonl', comma: string, names: string[], sample: string[], fields: (ImportField | '')[], header: boolean }
export type Unusable = 'empty' | 'utf16' | 'binary' | 'array' | 'nourl' | 'first'

export class Unfit extends Error {
  readonly why: Unusable
  constructor(why: Unusable) {
    super(why)
    this.why = why
  }
}

// understandFile looks at the beginning of a file. Throws Unfit for what is no list of
// links.
export async function understandFile(file: Blob): Promise<Understood> {
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer())
  const [a, b] = head
  if (a === 0xff && b === 0xfe || a === 0xfe && b === 0xff) throw new Unfit('utf16')
  if (a === 0x50 && b === 0x4b || a === 0x1f && b === 0x8b) throw new Unfit('binary')
  const lines = new Lines(file)
  try {
    const first = await lines.look(0)
    if (!first) throw new Unfit('empty')
    const start = first.text.trimStart()
    if (start.startsWith('{')) return { format: 'jsonl', comma: '', names: [], sample: [], fields: [], header: false }
    if (start.startsWith('[')) throw new Unfit('array')
    const comma = delimiter(first.text)
    const { cells, n } = await nextRow(lines, comma)
    if (!cells) throw new Unfit('first')
    const names = cells.map(trimmed)
    const fields = understand(names)
    if (!fields.includes('long_url')) {
      const bare = withoutHeader(names)
      if (bare) return { format: 'csv', comma, names: names.map(() => ''), sample: names, fields: bare, header: false }
    }
    lines.take(n)
    return { format: 'csv', comma, names, sample: await sampleOf(lines, comma, names.length), fields, header: true }
  } finally {
    void lines.close()
  }
}

// sampleOf is the first row that can be read, of some.
async function sampleOf(lines: Lines, comma: string, width: number): Promise<string[]> {
  const some = 20
  for (let i = 0; i < some; i++) {
    const { cells, n } = await nextRow(lines, comma)
    if (n === 0) break
    if (cells && cells.length <= width && cells.some(c => c.trim() !== '')) return cells.map(trimmed)
    lines.take(n)
  }
  return []
}

// nextRow returns the next row of CSV and how many lines it has; they are not taken. A
// row ends at the first end of a line at which the quotes are even. What never does is
// no row: then the first line alone is wrong, and reading goes on with the second.
async function nextRow(lines: Lines, comma: string): Promise<{ cells?: string[], n: number, wrong?: Unreadable, text: string }> {
  let text = '', odd = false, n = 0, size = 0
  for (;;) {
    const next = await lines.look(n)
    if (!next && n === 0) return { n: 0, text }
    if (next?.wrong && n === 0) return { n: 1, text, wrong: next.wrong }
    size += next?.size ?? 0
    if (!next || next.wrong || size > maxRow) return { n: 1, text: (await lines.look(0))!.text, wrong: 'quote' }
    text += next.text
    n++
    if (quotes(next.text) % 2 === 1) odd = !odd
    if (!odd) break
  }
  const cells = cellsOf(text, comma)
  return cells ? { cells, n, text } : { n: 1, text: (await lines.look(0))!.text, wrong: 'quote' }
}

// rows reads a file from its beginning. Empty lines are passed over.
export async function* rows(file: Blob, how: Understood, domain: string, tags: string[]): AsyncGenerator<Row> {
  const lines = new Lines(file)
  try {
    if (how.header) lines.take((await nextRow(lines, how.comma)).n)
    for (;;) {
      const row = how.format === 'csv' ? await csvRow(lines, how, domain, tags) : await jsonRow(lines, domain, tags)
      if (!row) return
      if (row !== 'empty') yield row
    }
  } finally {
    void lines.close()
  }
}

type Next = Promise<Row | 'empty' | undefined>

async function csvRow(lines: Lines, how: Understood, domain: string, tags: string[]): Next {
  const { cells, n, wrong, text } = await nextRow(lines, how.comma)
  if (n === 0) return undefined
  const line = lines.number + 1
  lines.take(n)
  const row = { line, bytes: lines.bytes, text: text.trim() }
  if (!cells) return { ...row, wrong: wrong! }
  if (cells.every(c => c.trim() === '')) return 'empty'
  if (cells.length > how.fields.length) return { ...row, wrong: 'columns' }
  const values: Values = {}
  cells.forEach((c, i) => {
    const field = how.fields[i]
    if (field) values[field] = trimmed(c)
  })
  return judged(row, values, domain, tags)
}

function judged(row: Row, values: Values, domain: string, tags: string[]): Row {
  try {
    const wanted = wantedOf(values, domain, tags)
    return wanted === skip ? { ...row, skipped: true } : { ...row, wanted }
  } catch (e) {
    if (e instanceof Faulty) return { ...row, wrong: e.fault, value: e.value }
    throw e
  }
}

async function jsonRow(lines: Lines, domain: string, tags: string[]): Next {
  const next = await lines.look(0)
  if (!next) return undefined
  lines.take(1)
  const row = { line: lines.number, bytes: lines.bytes, text: next.text.trim() }
  if (next.wrong) return { ...row, wrong: next.wrong }
  if (row.text === '') return 'empty'
  let members: unknown
  try { members = JSON.parse(row.text) } catch { return { ...row, wrong: 'json' } }
  if (typeof members !== 'object' || members === null || Array.isArray(members)) return { ...row, wrong: 'json' }
  return judged(row, valuesOf(members as Record<string, unknown>), domain, tags)
}

// valuesOf reads an object by the names of the API or by those of other shorteners, some
// of which have dates and bounds in meta.
function valuesOf(members: Record<string, unknown>): Values {
  const inner = members['meta']
  const all = { ...(typeof inner === 'object' && inner !== null ? inner as Record<string, unknown> : {}), ...members }
  const names = Object.keys(all)
  const fields = understand(names)
  const values: Values = {}
  names.forEach((name, i) => {
    const field = fields[i]
    if (field) values[field] = field === 'tags' ? texts(all[name]) : texts(all[name]).join(',')
  })
  return values
}

// texts is a value as cells: a list is one for each of its members, an object is its name.
function texts(v: unknown): string[] {
  if (v === null || v === undefined || v === '') return []
  if (Array.isArray(v)) return v.filter(m => !Array.isArray(m)).flatMap(texts)
  if (typeof v === 'object') return 'name' in v ? texts(v.name) : []
  return [String(v)]
}
