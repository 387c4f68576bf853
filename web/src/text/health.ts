import { span } from '../lib/format'
import { many } from './plural'

export const health = {
  title: 'Health', well: 'All systems normal', concerns: (n: number) => many(n, 'issue', 'issues'), grave: 'Critical', live: (seconds: number) => seconds < 2 ? 'Just now' : `${span(seconds)} ago`,
  stale: 'Can’t reach the server. Showing the last loaded data.',
  statuses: { ok: 'Ready', starting: 'Starting', draining: 'Draining', unavailable: 'Link store unavailable' },
  server: 'Server', status: 'Status', version: 'Version', uptime: 'Uptime', skew: 'Server clock', skewed: (seconds: number) => Math.abs(seconds) < 5 ? 'in sync with this device' : `${span(Math.abs(seconds))} ${seconds > 0 ? 'ahead of' : 'behind'} this device`,
  certificate: 'Certificate expires', backup: 'Last backup', noBackup: 'none recorded', backupHint: 'Only backups by curt backup are recorded.',
  storage: 'Storage', free: 'Free disk space', unknown: 'unknown', files: { 'curt.db': 'Links (curt.db)', 'clicks.db': 'Statistics (clicks.db)', 'search.db': 'Search (search.db)', clicks: 'Click log' },
  clicks: 'Clicks since the start', captured: 'Captured', counted: 'Counted', dropped: 'Dropped', lost: 'Lost', fresh: 'Statistics', behind: (seconds: number) => seconds < 2 ? 'up to date' : `${span(seconds)} behind`, notYet: 'not available yet',
  memory: 'Cache and search', cached: 'Cached links', bytes: 'Cache size', failures: 'Failed queries', search: 'Search index', every: 'complete', some: 'incomplete', indexed: 'Indexed links',
  reviews: 'Moderation', open: 'Pending reviews', overdue: 'Overdue', toQueue: 'Open queue',
  lists: 'Lists', noLists: 'No lists configured.', listNames: { blocklists: 'Blocklists', allowlists: 'Allowlists', reserved_words: 'Reserved words', refused_words: 'Refused words' },
  list: { name: 'List', entries: 'Entries', strange: 'Invalid lines', unusable: 'Not loaded', oldest: 'Oldest file' }
}
