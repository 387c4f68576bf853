// What visitors meet at a link: the server says it, and this guesses it for the moment
// until the server has.
import type { Link, State } from '../api/client'

export const states: State[] = ['live', 'not_yet', 'expired', 'exhausted', 'disabled', 'warning', 'blocked', 'legal']

export function stateOf(l: Link, now: number): State {
  if (l.safety === 'legal') return 'legal'
  if (l.safety === 'blocked') return 'blocked'
  if (l.status === 'disabled') return 'disabled'
  if (l.starts_at && Date.parse(l.starts_at) > now) return 'not_yet'
  if (l.expires_at && Date.parse(l.expires_at) <= now) return 'expired'
  if (l.clicks_left === 0) return 'exhausted'
  return l.safety === 'clean' ? 'live' : 'warning'
}
