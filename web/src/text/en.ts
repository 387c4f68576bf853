// Every English text of the dashboard. Another language is another such file; what needs
// a number or a name is a function.
import type { State } from '../api/client'
import { number } from '../lib/format'
import { fieldNames, sheetMore, utm } from './form'
import { health } from './health'
import { apiKeys, type ScopeName } from './keys'
import { many, noun } from './plural'
import { safety } from './safety'
import { transfer } from './transfer'

const states: Record<State, string> = {
  live: 'Live', not_yet: 'Scheduled', expired: 'Expired', exhausted: 'Limit reached', disabled: 'Disabled', deleted: 'Deleted',
  warning: 'Flagged', blocked: 'Blocked', legal: 'Taken down (legal)', pending: 'Pending'
}

export const en = {
  app: { name: 'curt', shortcuts: 'Keyboard shortcuts', signOut: 'Sign out', close: 'Close', again: 'Try again', notices: 'Notifications', cancel: 'Cancel', loading: 'Loading' },
  nav: {
    label: 'Screens', links: 'Links', clicks: 'Statistics', transfer: 'Import and export', keys: 'API keys', safety: 'Moderation', health: 'Health',
    barredTitle: 'You don’t have access to this page', barredText: (scopes: ScopeName[]) => `It requires a key with the scope ${scopes.map(s => `${apiKeys.scopeNames[s].name} (${s})`).join(' or ')}.`,
    noneTitle: 'Page not found', noneText: 'The URL may be mistyped, or belong to another version.', failedTitle: 'This page could not be loaded'
  },
  signIn: {
    title: 'Sign in',
    lead: 'Paste an API key to manage your links.',
    key: 'API key',
    hint: 'Kept in this tab only. Reloading the page signs you out.',
    button: 'Sign in', busy: 'Signing in…',
    ended: 'The key is no longer valid. Sign in with another one.',
    wrong: 'Invalid or revoked API key.',
    scope: 'This key has no access to the dashboard. Use one with the scope links:read.',
    first: 'Where do I find my key?',
    firstText: 'On its first start, the server writes the admin key to the file admin.key in its data folder. Admins create more keys on the page API keys.',
    elsewhere: 'Start page'
  },
  links: {
    title: 'Links', create: 'New link', bulk: 'Bulk create',
    search: 'Search links', searchHint: 'Search title, code, tag or destination',
    state: 'State', anyState: 'All states', tag: 'Tag', clearTag: (tag: string) => `Remove the filter by tag ${tag}`,
    sort: 'Sort by', newest: 'Newest first', oldest: 'Oldest first', clicked: 'Most clicks',
    clear: 'Clear filters',
    choose: (code: string) => `Select ${code}`, chooseAll: 'Select all loaded',
    columns: { link: 'Short link', destination: 'Destination', tags: 'Tags', clicks: 'Clicks', state: 'State', created: 'Created', actions: 'Actions' },
    copy: (url: string) => `Copy ${url}`, tagFilter: (tag: string) => `Filter by tag ${tag}`,
    unit: (n: number) => noun(n, 'click', 'clicks'), noClicks: 'Click count unavailable',
    states,
    stale: 'Can’t reach the server. Showing the last loaded data.', loading: 'Loading links', loadingMore: 'Loading more', listed: (n: number, whole: boolean) => whole ? many(n, 'link', 'links') : `${many(n, 'link', 'links')} loaded`,
    unlistedTitle: 'This key can create links but not list them', unlistedText: 'Links created here are shown until you leave. The list requires a key with the scope Read links (links:read).', words: 'Enter at least one letter or digit.', tooMany: (n: number) => `Enter at most ${number(n)} words.`,
    emptyTitle: 'No links yet', emptyText: 'Paste a URL anywhere on this page, or click New link.',
    noneTitle: 'No results', noneText: 'No links match. Search matches the start of words; new links appear within a few seconds.'
  },
  stats: {
    clicks: 'Clicks', people: 'Human clicks', bots: 'Bots', visitors: 'Unique visitors', before: 'Previous period',
    visitorsHint: 'Unique visitors per interval, summed. Visitors are not recognised across days.', uncounted: 'Too many to count in this range. Choose days as the interval.',
    noMinutes: 'not available by minute', lost: (at: string) => `Connection lost. Showing data from ${at}.`,
    impossible: { range: 'Unknown range. Choose one from the list.', date: 'Enter two valid dates.', order: 'The range ends before it starts.', long: 'The range is too long: at most ten years.' },
    range: 'Range', ranges: { '1h': 'Last hour', '24h': 'Last 24 hours', '7d': 'Last 7 days', '30d': 'Last 30 days', '90d': 'Last 90 days', '1y': 'Last 12 months', custom: 'Custom range' },
    from: 'From', to: 'To', interval: 'Interval', intervals: { minute: 'Minute', quarter: '15 minutes', hour: 'Hour', day: 'Day' }, compare: 'Compare with previous period',
    overTime: 'Clicks over time', table: 'Show as table', when: 'Time', stillCounting: 'incomplete',
    stale: (at: string) => `Statistics are unavailable right now; shown as of ${at}.`,
    completeUntil: (at: string) => `Complete until ${at}.`, complete: (from: string) => `Complete since ${from}.`,
    filteredFrom: (at: string) => `Filtered data is available from ${at}.`,
    failed: 'The statistics could not be loaded',
    placesOf: (at: string) => `Location data of ${at}.`,
    places: 'Locations', sources: 'Sources', software: 'Devices', visits: 'Traffic',
    dimensions: { country: 'Countries', city: 'Cities', referrer_host: 'Referrers', utm_source: 'UTM source', utm_medium: 'UTM medium', utm_campaign: 'UTM campaign', device: 'Device types', browser: 'Browsers', os: 'Operating systems', language: 'Languages', trigger: 'Triggers', bot: 'Humans and bots' },
    values: {
      '(direct)': 'Direct / none', '(other)': 'Other', '(unknown)': 'Unknown', false: 'Humans', true: 'Bots', link: 'Link', qr: 'QR code', warning: 'After a warning',
      desktop: 'Desktop', mobile: 'Phone', tablet: 'Tablet', bot: 'Bot', other: 'Other'
    },
    only: (kind: string, value: string) => `${kind}: only ${value}`, drop: (kind: string, value: string) => `${kind}: ${value}, remove filter`,
    none: 'No clicks in this range.', more: (n: number) => `Show all ${number(n)}`, fewer: 'Show fewer'
  },
  one: {
    unread: 'The destination requires a key with the scope Read links (links:read).',
    back: 'Links', title: (code: string) => `${code}`, total: (n: number) => noun(n, 'total click', 'total clicks'), live: 'Live', notLive: 'Reconnecting…',
    edit: 'Edit', qr: 'QR code', share: 'Share statistics', open: (url: string) => `Open ${url}`,
    goneTitle: 'Link not found', goneText: 'It may have been deleted, or belong to another workspace.', failed: 'The link could not be loaded',
    statistics: (code: string) => `Statistics of ${code}`
  },
  all: {
    title: 'Statistics', top: 'Top links',
    orphans: (n: number, day: number) => `${many(n, 'visit', 'visits')} to unknown links, ${number(day)} in the last 24 hours.`
  },
  raw: {
    title: 'Raw clicks', hint: 'Newest first, with the range and filters above.', columns: { time: 'Time', who: 'Visitor', place: 'Location', source: 'Referrer', device: 'Device', way: 'Trigger' },
    none: 'No clicks match. Raw clicks are kept for the operator’s retention period.', noneYet: 'No matches so far. There are older clicks.', more: 'Show older clicks', loading: 'Loading clicks', csv: 'Download CSV', csvBusy: (n: number) => `${number(n)} clicks…`,
    csvCut: (n: number) => `The file has the newest ${number(n)} clicks; the range has more.`, damaged: 'Part of the click log is unreadable: clicks may be missing here.', failed: 'The clicks could not be loaded',
    fresh: 'Show newest', person: 'Visitor', preview: 'Preview', outcome: { redirected: '', fallback: 'Fallback', refused: 'Refused' }
  },
  picture: { title: 'QR code', size: 'Size', pixels: (n: number) => `${number(n)} pixels`, format: 'Format', level: 'Error correction', levels: { L: 'L (7 %)', M: 'M (15 %)', Q: 'Q (25 %)', H: 'H (30 %)' }, download: (format: string) => `Download ${format}` },
  shares: {
    title: 'Share statistics', lead: 'Anyone with this URL can view the statistics of this link, without a key. It gives access to nothing else.',
    lasts: 'Expires', after: { 86400: 'In 1 day', 604800: 'In 1 week', 2592000: 'In 30 days', 31536000: 'In 1 year' }, make: 'Create share link', made: 'Copy this URL now; it won’t be shown again', ends: (at: string) => `Expires ${at}.`,
    end: 'Revoke all share links', endText: 'All share links of this link stop working at once.', ended: 'All share links revoked'
  },
  transfer, apiKeys, safety, health, utm, fieldNames,
  sheet: {
    ...sheetMore,
    kept: 'Draft restored.', discard: 'Discard draft',
    create: 'New link', edit: (code: string) => `Edit ${code}`, made: 'Your link is ready',
    url: 'Destination', urlHint: 'Where should this link go?',
    alias: 'Alias', aliasHint: '3 to 64 letters, digits, - and _. Leave blank to generate a code.', aliasFree: (url: string) => `${url} is available.`, aliasHeld: (until: string) => `Reserved for you until ${until}.`,
    aliasReserved: (until: string) => `Someone has reserved this alias until ${until}.`, aliasOthers: 'Available:',
    title: 'Title', titleHint: 'Only visible to you.', tags: 'Tags', tagsHint: 'Press Enter or a comma after each.', tagRemove: (tag: string) => `Remove tag ${tag}`,
    expires: 'Expires', presets: { keep: 'Keep', never: 'Never', hour: 'In 1 hour', day: 'In 1 day', week: 'In 7 days', month: 'In 30 days', tonight: 'End of today', custom: 'Custom…' },
    expiresAt: 'Date and time', expiresOn: (at: string, zone: string) => `Expires ${at} (${zone}).`,
    more: 'More options',
    redirect: 'Redirect', redirects: { 301: '301 Permanent', 302: '302 Temporary (default)', 307: '307 Temporary, keeps the method', 308: '308 Permanent, keeps the method' },
    maxClicks: 'Click limit', maxClicksHint: 'Leave blank for unlimited.',
    fallback: 'Fallback URL', fallbackHint: 'Where visitors go once the link has expired or reached its limit.',
    forward: 'Forward query parameters', index: 'Allow search engine indexing',
    utm: 'UTM parameters', utmHint: 'Appended to the destination URL.',
    utmFields: { utm_source: 'Source', utm_medium: 'Medium', utm_campaign: 'Campaign', utm_term: 'Term', utm_content: 'Content' },
    changedElsewhere: 'Someone else changed this link. The form shows the current version with your changes. Review and save again.',
    button: 'Create link', save: 'Save', busy: 'Saving…', another: 'Create another', done: 'Done', copy: 'Copy',
    qr: 'QR code of the short link', qrFailed: 'The QR code could not be generated.', download: 'Download QR code (SVG)',
    preview: 'Preview page',
    off: 'Disable', on: 'Enable', remove: 'Delete', manage: 'Actions', statistics: 'Statistics',
    removeTitle: (code: string) => `Delete ${code}?`, removeText: 'The link stops working and its code can never be reused. This cannot be undone.', removeSure: 'Delete permanently',
    codeLong: 'The alias is too long: at most 64 characters.', required: 'Enter a URL.', number: 'Enter a whole number, 1 or more.', date: 'Enter a date in the future.'
  },
  bulk: {
    title: 'Bulk create', label: 'One URL per line', hint: (most: number) => `At most ${number(most)}. Each URL may be followed by a space and an alias.`,
    lines: (n: number) => many(n, 'link', 'links'), button: (n: number) => `Create ${many(n, 'link', 'links')}`, tooMany: (most: number) => `At most ${number(most)} links at a time.`,
    done: (made: number, refused: number) => refused ? `${many(made, 'link', 'links')} created, ${number(refused)} failed` : `${many(made, 'link', 'links')} created`,
    odd: (n: number) => `${many(n, 'line', 'lines')} skipped (not a URL):`, oddSure: 'Create anyway', left: (n: number) => `${many(n, 'line', 'lines')} skipped.`,
    refused: 'Failed', made: 'Created', line: 'URL', outcome: 'Result', copyAll: 'Copy all short links', back: 'Fix failed lines'
  },
  chosen: {
    label: 'Selected links', count: (n: number) => `${number(n)} selected`, clear: 'Clear selection', copy: 'Copy', save: 'Export', tag: 'Add tags', on: 'Enable', off: 'Disable', remove: 'Delete',
    tagTitle: (n: number) => `Tag ${many(n, 'link', 'links')}`, tagButton: 'Add tags', tagRequired: 'Enter a tag.',
    removeTitle: (n: number) => `Delete ${many(n, 'link', 'links')}?`, removeText: 'The links stop working and their codes can never be reused. This cannot be undone.',
    done: (n: number) => `${many(n, 'link', 'links')} changed`, removed: (n: number) => `${many(n, 'link', 'links')} deleted`,
    failed: (bad: number, n: number, why: string) => `${number(bad)} of ${many(n, 'link', 'links')} not changed: ${why}`
  },
  said: {
    copied: 'Copied to the clipboard', notCopied: 'The browser blocked copying. Select the link and copy it.',
    saved: (code: string) => `Saved ${code}`, on: (code: string) => `${code} enabled`, off: (code: string) => `${code} disabled`, removed: (code: string) => `Deleted ${code}`,
    undone: (what: string) => `Couldn’t complete: ${what}`
  },
  keys: {
    title: 'Keyboard shortcuts', single: 'Single-key shortcuts', singleHint: 'Turn them off if you use speech input or type without looking.',
    list: [['c', 'New link'], ['b', 'Bulk create'], ['/', 'Search'], ['j', 'Next link'], ['k', 'Previous link'], ['Enter', 'Open the focused link'], ['x', 'Select the focused link'], ['y', 'Copy the short link'], ['s', 'Statistics of the focused link'], ['?', 'This help']] as [string, string][],
    paste: 'Paste a URL anywhere to create a link, or several lines for bulk create.'
  },
  failure: {
    offline: 'You are offline. Showing the last loaded data.', unreachable: 'Can’t reach the server.',
    limited: (wait: string) => wait ? `Too many requests. Try again in ${wait}.` : 'Too many requests. Try again later.',
    scope: 'You don’t have permission to do that.', gone: 'It no longer exists.',
    server: (id?: string) => id ? `Internal server error (${id}).` : 'Internal server error.', title: 'Links could not be loaded', loading: 'This could not be loaded'
  }
}
