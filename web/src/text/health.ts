import { span } from '../lib/format'
import { many } from './plural'

export const health = {
  title: 'Health', well: 'All is well', concerns: (n: number) => many(n, 'thing to look at', 'things to look at'), grave: 'Grave', live: (seconds: number) => seconds < 2 ? 'Just now' : `${span(seconds)} ago`,
  stale: 'The server does not answer. What is shown is of before.',
  statuses: { ok: 'Wants traffic', starting: 'Starting', draining: 'Stopping', unavailable: 'Link store away' },
  server: 'Server', status: 'Status', version: 'Version', uptime: 'Running for', skew: 'Its clock', skewed: (seconds: number) => Math.abs(seconds) < 5 ? 'agrees with this one' : `${span(Math.abs(seconds))} ${seconds > 0 ? 'ahead of' : 'behind'} this one`,
  certificate: 'Certificate ends', backup: 'Last backup', noBackup: 'none noted', backupHint: 'Backups by curt backup are noted. What other programs copy is not known here.',
  storage: 'Storage', free: 'Free on the disk', unknown: 'unknown', files: { 'curt.db': 'Links (curt.db)', 'clicks.db': 'Statistics (clicks.db)', 'search.db': 'Search (search.db)', clicks: 'Click log' },
  clicks: 'Clicks since the start', captured: 'Captured', counted: 'Counted', dropped: 'Dropped', lost: 'Lost', fresh: 'Statistics are', behind: (seconds: number) => seconds < 2 ? 'up to date' : `${span(seconds)} behind`, notYet: 'not there yet',
  memory: 'Memory and search', cached: 'Links in memory', bytes: 'Their size', failures: 'Failed questions', search: 'Search knows', every: 'every link', some: 'not every link yet', indexed: 'Brought in',
  reviews: 'Safety', open: 'Reviews that wait', overdue: 'Overdue', toQueue: 'To the queue',
  lists: 'Lists', noLists: 'No lists are set.', listNames: { blocklists: 'Blocklists', allowlists: 'Allow-lists', reserved_words: 'Reserved words', refused_words: 'Refused words' },
  list: { name: 'List', entries: 'Entries', strange: 'Lines not understood', unusable: 'Unusable', oldest: 'Oldest file' }
}
