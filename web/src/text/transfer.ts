import { number } from '../lib/format'
import { many } from './plural'

// The fields of a link that a column may become, in order.
const fields = {
  long_url: 'Destination', short_code: 'Short code', title: 'Title', tags: 'Tags', domain: 'Domain', starts_at: 'Starts', expires_at: 'Expires', max_clicks: 'Most clicks',
  redirect_status: 'Redirect status', fallback_url: 'Fall-back address', forward_query: 'Pass on the query', noindex: 'Not for search engines', cacheable: 'Cacheable', status: 'Status'
}
export type ImportField = keyof typeof fields

export const transfer = {
  title: 'Import and export', tabs: { import: 'Import', export: 'Export' }, label: 'Import or export',
  drop: 'Drop a file here, or choose one', choose: 'Choose a file', another: 'Choose another file',
  formats: 'CSV from this service, from other shorteners or from a spreadsheet; or JSON Lines. The file is checked on the server before any link is created. It may have 256 MB.',
  fields, unnamed: (n: number) => `Column ${number(n)}`,
  ignored: 'Leave out', columns: 'How the columns are read', column: 'Column', sample: 'For example', field: 'Becomes',
  fieldOf: (column: string) => `What ${column} becomes`, lines: 'Each line is a link, by the names of the API or of other shorteners.',
  noURL: 'Choose the column with the destinations.',
  tags: 'Tags for all of them', domain: 'Domain', domainHint: 'For rows that name none.',
  uploading: 'Uploading the file', paused: 'The upload has stopped', checking: 'Checking the file', queued: 'Waiting for a server',
  checked: (good: number, bad: number, skipped: number) => [`${many(good, 'link', 'links')} can be created`, ...(bad ? [`${many(bad, 'row', 'rows')} cannot`] : []), ...(skipped ? [`${many(skipped, 'deleted link is', 'deleted links are')} left out`] : [])].join(', '),
  failed: 'The import has failed', checkFailed: 'The file cannot be imported as it is', canceled: 'The import was canceled', checkCanceled: 'The check was canceled',
  running: 'Creating links', done: 'The import is done', waiting: (at: string) => `The import waits for a limit of the key, or for the server, and continues at ${at}`,
  start: (n: number) => `Import ${many(n, 'link', 'links')}`, nothing: 'There is nothing to import.',
  progress: 'Progress of the import', of: (done: string, all: string) => `${done} of ${all}`,
  stop: 'Stop', resume: 'Continue', retry: 'Retry', cancel: 'Cancel', recheck: 'Check again',
  kept: 'What was created stays. Continue creates the links of the rows that are left.',
  interrupted: 'The upload was interrupted, or another page is uploading the file. To continue it here, choose the same file.',
  sameFile: 'Choose the same file', otherFile: (size: string) => `This is another file: the upload has ${size}.`,
  changed: 'The file was changed or can no longer be read. Choose it again.',
  background: 'The server does the work: this page may be closed. What comes of it is kept for a day.', stay: 'Keep this page open until the upload is complete.',
  created: 'Created', refused: 'Failed', skipped: 'Left out',
  errors: 'Rows that failed', wouldFail: 'Rows that cannot be created', line: 'Line', code: 'Short code', why: 'Why', moreErrors: (n: number) => `and ${many(n, 'more row', 'more rows')}, which the download has`,
  saveErrors: 'Download failed rows (CSV)', saveResults: 'Download all results (CSV)', downloading: (of: string) => `Downloading: ${of}`,
  lost: 'This job is not there any more.', close: 'Close it',
  jobs: {
    title: 'Jobs', lead: 'Imports and exports of the workspace. Each is removed a day after its last change.', job: 'Job', state: 'State', result: 'Result', changed: 'Changed', actions: 'Actions',
    kinds: { import: 'Import', export: 'Export', check: 'Check' },
    states: { uploading: 'Uploading', queued: 'Queued', running: 'Running', done: 'Done', failed: 'Failed', canceled: 'Canceled' }, waiting: 'Waiting',
    counts: (created: number, failed: number) => failed ? `${number(created)} created, ${number(failed)} failed` : `${number(created)} created`, checked: (created: number, failed: number) => failed ? `${number(created)} can be created, ${number(failed)} cannot` : `${number(created)} can be created`,
    links: (n: number) => many(n, 'link', 'links'), cancel: 'Cancel', remove: 'Delete', removed: 'Deleted', download: 'Download', empty: 'No jobs yet', listed: (n: number, whole: boolean) => whole ? many(n, 'job', 'jobs') : `The newest ${many(n, 'job', 'jobs')}`, more: 'Older jobs'
  },
  export: {
    lead: 'Everything about the links that match, in a file. An import takes it back.', format: 'Format', csv: 'CSV, for spreadsheets', jsonl: 'JSON Lines, for programs',
    q: 'Search', qHint: 'Empty: all links.', tag: 'Tag', state: 'State', domain: 'Domain', anyDomain: 'Any domain',
    start: 'Export', running: 'Reading links', failed: 'The export has failed', canceled: 'The export was canceled', done: 'The export is done', progress: 'Progress of the export',
    count: (n: number) => many(n, 'link', 'links'), none: 'No link matches.', save: 'Download the file', part: 'Download what is there', again: 'Another export',
    background: 'The server does the work: this page may be closed. The file is kept for a day.'
  }
}
