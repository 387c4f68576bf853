// What stands in the form of a link, and what of it the API is told.
import type { Link, LinkChange, LinkCreate } from '../api/client'
import { local } from './format'

export type Preset = 'keep' | 'never' | 'hour' | 'day' | 'week' | 'month' | 'tonight' | 'custom'
export type Redirect = 301 | 302 | 307 | 308

export interface Draft {
  url: string; alias: string; domain: string; title: string; tags: string[] // domain: '' is the default one
  preset: Preset; expiresAt: string; startsAt: string
  redirect: Redirect; maxClicks: string; fallback: string; forward: boolean; index: boolean
}

export function blank(url = ''): Draft {
  return { url, alias: '', domain: '', title: '', tags: [], preset: 'never', expiresAt: '', startsAt: '', redirect: 302, maxClicks: '', fallback: '', forward: false, index: false }
}

export function draftOf(l: Link): Draft {
  return {
    url: l.long_url, alias: l.short_code, domain: l.domain, title: l.title ?? '', tags: l.tags,
    preset: l.expires_at ? 'keep' : 'never', expiresAt: l.expires_at ? local(new Date(l.expires_at)) : '', startsAt: l.starts_at ? local(new Date(l.starts_at)) : '',
    redirect: l.redirect_status, maxClicks: l.max_clicks === null ? '' : String(l.max_clicks), fallback: l.fallback_url ?? '',
    forward: l.forward_query, index: !l.noindex
  }
}

// ends returns when a link with this draft ends; null: never; undefined: as it stands.
export function ends(d: Draft, now: Date): Date | null | undefined {
  const later = (hours: number) => new Date(now.getTime() + hours * 3_600_000)
  switch (d.preset) {
    case 'keep': return undefined
    case 'never': return null
    case 'hour': return later(1)
    case 'day': return later(24)
    case 'week': return later(7 * 24)
    case 'month': return later(30 * 24)
    case 'tonight': return new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1)
    case 'custom': return new Date(d.expiresAt)
  }
}

// address adds the scheme that people leave out.
export function address(text: string): string {
  const s = text.trim()
  return s === '' || /^[a-z][a-z0-9+.-]*:/i.test(s) && !/^[^/:]+:\d/.test(s) ? s : 'https://' + s
}

// doubtful says that a line of addresses, each with a code or none behind it, is rather
// prose: a host without a dot is hardly what anybody means.
export function doubtful(line: string): boolean {
  const [url = '', , more] = line.split(/\s+/)
  const host = URL.parse(address(url))?.hostname ?? ''
  return more !== undefined || !(host === 'localhost' || host.startsWith('[') || /[^.]\.[^.]/.test(host))
}

// addresses are the lines of a text, where each looks like an address.
export function addresses(text: string): string[] {
  const lines = text.split(/\r?\n/).map(l => l.trim()).filter(l => l !== '')
  return lines.every(l => /^https?:\/\/\S/i.test(l)) ? lines : []
}

export const utmNames = ['utm_source', 'utm_medium', 'utm_campaign', 'utm_term', 'utm_content'] as const
export type UTM = typeof utmNames[number]

export function utmOf(url: string, name: UTM): string {
  return URL.parse(address(url))?.searchParams.get(name) ?? ''
}

export function withUTM(url: string, name: UTM, value: string): string {
  const u = URL.parse(address(url))
  if (!u) return url
  if (value === '') u.searchParams.delete(name)
  else u.searchParams.set(name, value)
  return u.href
}

export type Field = 'long_url' | 'custom_alias' | 'title' | 'tags' | 'domain' | 'starts_at' | 'expires_at' | 'max_clicks' | 'fallback_url'
export type Mistake = 'required' | 'number' | 'date' | 'codeLong'
export const longestCode = 64 // characters

// mistakes finds what need not be sent to be known as wrong.
export function mistakes(d: Draft, now: Date): Partial<Record<Field, Mistake>> {
  const found: Partial<Record<Field, Mistake>> = {}
  if (d.url.trim() === '') found.long_url = 'required'
  if (d.alias.trim().length > longestCode) found.custom_alias = 'codeLong'
  if (d.maxClicks.trim() !== '' && !/^[1-9]\d{0,15}$/.test(d.maxClicks.trim())) found.max_clicks = 'number'
  if (d.preset === 'custom' && !(Date.parse(d.expiresAt) > now.getTime())) found.expires_at = 'date'
  return found
}

// rebase returns the draft of a link as it is now, with what d changes of the link as it was.
export function rebase(d: Draft, was: Link, now: Link): Draft {
  const before = draftOf(was)
  const changed = Object.entries(d).filter(([name, v]) => JSON.stringify(v) !== JSON.stringify(before[name as keyof Draft]))
  return { ...draftOf(now), ...Object.fromEntries(changed) }
}

const optional = (s: string): string | null => s.trim() === '' ? null : s.trim()

export function toCreate(d: Draft, now: Date): LinkCreate {
  const body: LinkCreate = { long_url: address(d.url) }
  if (d.alias.trim() !== '') body.custom_alias = d.alias.trim()
  if (d.domain !== '') body.domain = d.domain
  if (d.title.trim() !== '') body.title = d.title.trim()
  if (d.tags.length > 0) body.tags = d.tags
  const until = ends(d, now)
  if (until) body.expires_at = until.toISOString()
  if (d.startsAt !== '') body.starts_at = new Date(d.startsAt).toISOString()
  if (d.redirect !== 302) body.redirect_status = d.redirect
  if (d.maxClicks.trim() !== '') body.max_clicks = Number(d.maxClicks)
  if (d.fallback.trim() !== '') body.fallback_url = address(d.fallback)
  if (d.forward) body.forward_query = true
  if (d.index) body.noindex = false
  return body
}

// toChange names what differs from the link, and nothing else.
export function toChange(d: Draft, l: Link, now: Date): LinkChange {
  const change: LinkChange = {}
  const was = draftOf(l)
  if (d.url !== was.url) change.long_url = address(d.url)
  if (d.title !== was.title) change.title = optional(d.title)
  if (d.tags.join('\n') !== was.tags.join('\n')) change.tags = d.tags
  const until = ends(d, now)
  if (until !== undefined && (until !== null || l.expires_at !== null)) change.expires_at = until && until.toISOString()
  if (d.startsAt !== was.startsAt) change.starts_at = d.startsAt === '' ? null : new Date(d.startsAt).toISOString()
  if (d.redirect !== was.redirect) change.redirect_status = d.redirect
  if (d.maxClicks !== was.maxClicks) change.max_clicks = d.maxClicks.trim() === '' ? null : Number(d.maxClicks)
  if (d.fallback !== was.fallback) change.fallback_url = d.fallback.trim() === '' ? null : address(d.fallback)
  if (d.forward !== was.forward) change.forward_query = d.forward
  if (d.index !== was.index) change.noindex = !d.index
  return change
}
