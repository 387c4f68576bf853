// A link as a file has it becomes one that the API is asked for, or a reason why not.
import type { Link, LinkCreate } from '../api/client'
import { codeOf, type ImportField } from './columns'
import { address } from './draft'

// Wanted is a link of a file. off: it was switched off where it comes from.
export interface Wanted { link: LinkCreate, off: boolean }

export type Fault = 'url' | 'scheme' | 'code' | 'control' | 'title' | 'tags' | 'date' | 'redirect' | 'clicks' | 'flag' | 'status'

// Skip is a row that is no link any more.
export const skip = Symbol('deleted')

export class Faulty extends Error {
  readonly fault: Fault
  readonly value: string
  constructor(fault: Fault, value: string) {
    super(fault)
    this.fault = fault
    this.value = value.slice(0, 60)
  }
}

export type Values = Partial<Record<ImportField, string | string[]>>

const control = /\p{Cc}/u
const bytes = (s: string): number => new TextEncoder().encode(s).length

// wantedOf judges what can be judged without the server. Throws Faulty.
export function wantedOf(values: Values, domain: string, tags: string[]): Wanted | typeof skip {
  const text = (field: ImportField): string => {
    const v = values[field]
    return (Array.isArray(v) ? v.join(',') : v ?? '').trim()
  }
  const status = text('status')
  if (status === 'deleted') return skip
  if (status !== '' && status !== 'active' && status !== 'disabled') throw new Faulty('status', status)
  const link: LinkCreate = { long_url: target(text('long_url')) }
  const code = codeOf(text('short_code'))
  if (code !== '') {
    if (!/^[A-Za-z0-9_-]{3,64}$/.test(code)) throw new Faulty('code', code)
    link.custom_alias = code
  }
  const title = text('title')
  if (control.test(title)) throw new Faulty('control', title)
  if (bytes(title) > 512) throw new Faulty('title', title)
  if (title !== '') link.title = title
  const all = [...new Set([...listOf(values.tags), ...tags])]
  if (all.some(t => control.test(t))) throw new Faulty('control', all.join(', '))
  if (all.length > 32 || all.some(t => bytes(t) > 64)) throw new Faulty('tags', all.join(', '))
  if (all.length > 0) link.tags = all
  const on = text('domain') || domain
  if (on !== '') link.domain = on
  const starts = dateOf(text('starts_at')), expires = dateOf(text('expires_at'))
  if (starts) link.starts_at = starts
  if (expires) link.expires_at = expires
  const redirect = text('redirect_status')
  if (redirect !== '') {
    if (!/^30[1278]$/.test(redirect)) throw new Faulty('redirect', redirect)
    link.redirect_status = Number(redirect) as 301 | 302 | 307 | 308
  }
  const most = text('max_clicks')
  if (most !== '' && !/^\d{1,15}$/.test(most)) throw new Faulty('clicks', most)
  if (Number(most) > 0) link.max_clicks = Number(most)
  if (text('fallback_url') !== '') link.fallback_url = target(text('fallback_url'))
  for (const field of ['forward_query', 'noindex', 'cacheable'] as const) {
    const flag = flagOf(text(field))
    if (flag !== undefined) link[field] = flag
  }
  return { link, off: status === 'disabled' }
}

function target(text: string): string {
  if (text === '') throw new Faulty('url', '')
  const url = /[\s\p{Cc}]/u.test(text) ? null : URL.parse(address(text)) // which would mend what the server refuses
  if (!url) throw new Faulty('url', text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Faulty('scheme', text)
  return address(text)
}

// listOf reads "a,b", "a|b" and "[a, b]".
function listOf(v: string | string[] | undefined): string[] {
  const parts = Array.isArray(v) ? v : (v ?? '').trim().replace(/^\[|\]$/g, '').split(/[,|]/)
  return parts.map(t => t.trim().replace(/^["']+|["']+$/g, '')).filter(t => t !== '')
}

function flagOf(text: string): boolean | undefined {
  if (text === '') return undefined
  if (/^(1|t|true)$/i.test(text)) return true
  if (/^(0|f|false)$/i.test(text)) return false
  throw new Faulty('flag', text)
}

const written = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d(?:\.\d+)?))?)?\s*(Z|[+-]\d\d:?\d\d)?(?:\s+[A-Z]{3,4})?$/

// dateOf reads the times that databases and spreadsheets print, UTC where they say
// nothing, and Unix seconds and milliseconds. '' = none.
function dateOf(text: string): string {
  if (text === '') return ''
  if (/^\d{9,13}$/.test(text)) {
    const n = Number(text)
    return new Date(n < 1e11 ? n * 1000 : n).toISOString()
  }
  const m = written.exec(text)
  const at = new Date(m ? `${m[1]}T${m[2] ?? '00:00'}:${m[3] ?? '00'}${m[4] ?? 'Z'}` : NaN)
  if (Number.isNaN(at.getTime())) throw new Faulty('date', text)
  return at.toISOString()
}

// columns of an export, in order: those of the command line, which takes it as it is, and
// two for people.
export const columns = ['id', 'domain', 'short_code', 'long_url', 'title', 'tags', 'workspace_id', 'created_by', 'status', 'safety', 'redirect_status',
  'starts_at', 'expires_at', 'max_clicks', 'clicks_spent', 'fallback_url', 'forward_query', 'noindex', 'cacheable', 'created_at', 'updated_at', 'version',
  'short_url', 'clicks'] as const

// recordOf is a link as an export has it: what a link does not have is left out. On the
// default domain it has none, as it would move with it.
export function recordOf(l: Link, home: string): Record<string, unknown> {
  const all: Record<typeof columns[number], unknown> = {
    ...l, domain: l.domain === home ? '' : l.domain, clicks_spent: l.max_clicks !== null && l.clicks_left !== null ? l.max_clicks - l.clicks_left : 0
  }
  return Object.fromEntries(columns.map(c => [c, all[c]]).filter(([c, v]) => v !== null && v !== '' && v !== false && (v !== 0 || c === 'clicks') && !(Array.isArray(v) && v.length === 0)))
}

export function cellsOfLink(l: Link, home: string): string[] {
  const record = recordOf(l, home)
  return columns.map(c => {
    const v = record[c]
    return v === undefined ? '' : Array.isArray(v) ? v.join(',') : String(v)
  })
}
