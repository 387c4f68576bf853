// A link as an export has it.
import type { Link } from '../api/client'

// columns of an export of selected links, in order: those of the server, which imports it as it
// is, and two for people.
export const columns = ['id', 'domain', 'short_code', 'long_url', 'title', 'tags', 'workspace_id', 'created_by', 'status', 'safety', 'redirect_status',
  'starts_at', 'expires_at', 'max_clicks', 'clicks_spent', 'fallback_url', 'forward_query', 'noindex', 'cacheable', 'created_at', 'updated_at', 'version',
  'short_url', 'clicks'] as const

// recordOf is a link as an export has it: what a link does not have is left out. On the
// default domain it has none, as it would move with it.
function recordOf(l: Link, home: string): Record<string, unknown> {
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
