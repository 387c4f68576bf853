import type { ImportField } from '../lib/columns'
import type { Unreadable, Unusable } from '../lib/importfile'
import { number } from '../lib/format'
import { many } from './plural'

const fields: Record<ImportField, string> = {
  long_url: 'Destination', short_code: 'Short code', title: 'Title', tags: 'Tags', domain: 'Domain', starts_at: 'Starts', expires_at: 'Expires', max_clicks: 'Most clicks',
  redirect_status: 'Redirect status', fallback_url: 'Fall-back address', forward_query: 'Pass on the query', noindex: 'Not for search engines', cacheable: 'Cacheable', status: 'Status'
}

const unusable: Record<Unusable, string> = {
  empty: 'The file is empty.', utf16: 'The file is UTF-16. Save it as UTF-8.', binary: 'The file is compressed or a spreadsheet. Save it as CSV.',
  array: 'The file is one JSON list. Write one object on each line (JSON Lines).', nourl: 'Say which column has the destinations.', first: 'The first line cannot be read: a quote is not closed.'
}

const faults: Record<Unreadable, (value: string) => string> = {
  long: () => 'The row is longer than 128 KiB.', encoding: () => 'The row is not UTF-8.', nul: () => 'The row has a NUL byte.',
  quote: () => 'A quote is not closed, or stands where none may.', columns: () => 'The row has more columns than the first line.', json: () => 'The line is no JSON object.',
  url: v => v ? `“${v}” is no address.` : 'There is no destination.', scheme: () => 'Only http and https addresses.', code: v => v.includes(' = ') ? `The code ${v.split(' = ')[0]} stands in line ${v.split(' = ')[1]}, too.` : `“${v}” is no short code: 3 to 64 letters, digits, - and _.`,
  control: v => `“${v}” has a line break or another control character.`,
  title: () => 'The title is longer than 512 bytes.', tags: () => 'More than 32 tags, or one longer than 64 bytes.', date: v => `“${v}” is no date.`, redirect: v => `“${v}” is none of 301, 302, 307, 308.`,
  clicks: v => `“${v}” is no whole number.`, flag: v => `“${v}” is neither true nor false.`, status: v => `“${v}” is no status.`
}

export const transfer = {
  title: 'Import and export', tabs: { import: 'Import', export: 'Export' }, label: 'Import or export',
  drop: 'Drop a file here, or choose one', choose: 'Choose a file', another: 'Choose another file',
  formats: 'CSV from this service, from other shorteners or from a spreadsheet; or JSON Lines. It is read in this browser, piece by piece, and may be large.',
  fields, unusable, faults,
  ignored: 'Leave out', columns: 'How the columns are read', column: 'Column', sample: 'For example', field: 'Becomes', unnamed: (n: number) => `Column ${number(n)}`,
  fieldOf: (column: string) => `What ${column} becomes`, lines: 'Each line is a link, by the names of the API or of other shorteners.',
  tags: 'Tags for all of them', domain: 'Domain', domainHint: 'For rows that name none.',
  checking: 'Reading the file', checked: (good: number, bad: number, skipped: number) => [`${many(good, 'link', 'links')} can be made`, ...(bad ? [`${many(bad, 'row', 'rows')} cannot`] : []), ...(skipped ? [`${many(skipped, 'deleted link is', 'deleted links are')} left out`] : [])].join(', '),
  start: (n: number) => `Import ${many(n, 'link', 'links')}`, nothing: 'There is nothing to import.',
  progress: 'Progress of the import', sending: 'Making links', stopping: 'Stopping after the batch under way', stopped: 'Stopped', done: 'The import is done', waiting: (at: string) => `The server asks to wait until ${at}`,
  stop: 'Stop', resume: 'Go on', over: 'Start over',
  made: 'Made', failed: 'Refused', skipped: 'Left out', rate: (n: number) => `${number(n)} a second`, left: (time: string) => `${time} left`,
  errors: 'Rows that were refused', wouldFail: 'Rows that cannot be made', line: 'Line', row: 'Row', why: 'Why', moreErrors: (n: number) => `and ${many(n, 'more row', 'more rows')}, which the file has`,
  saveErrors: 'Download these rows (CSV)', saveResults: 'Download all results (CSV)',
  again: 'After an interruption choose the same file again: within a day nothing is made twice.',
  changed: 'The file was changed or cannot be read any more. Choose it again.',
  leave: 'An import is under way. It stops when you leave.',
  export: {
    lead: 'Everything about the links that match, in a file. An import takes it back.', format: 'Format', csv: 'CSV, for spreadsheets', jsonl: 'JSON Lines, for programs',
    q: 'Search', qHint: 'Empty: all links.', tag: 'Tag', state: 'State', domain: 'Domain', anyDomain: 'Any domain',
    start: 'Export', running: 'Reading links', stopped: 'Stopped', done: 'The export is done', progress: 'Progress of the export',
    count: (n: number) => many(n, 'link', 'links'), none: 'No link matches. The file has no row.', stop: 'Stop', resume: 'Go on', save: 'Save the file again', savePart: 'Save what is there', again: 'Another export'
  }
}
