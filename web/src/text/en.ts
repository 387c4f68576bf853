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
  live: 'Live', not_yet: 'Not yet', expired: 'Expired', exhausted: 'Used up', disabled: 'Off', deleted: 'Deleted',
  warning: 'Warning', blocked: 'Blocked', legal: 'Withheld'
}

export const en = {
  app: { name: 'curt', shortcuts: 'Keyboard shortcuts', signOut: 'Sign out', close: 'Close', again: 'Try again', notices: 'Notifications', cancel: 'Cancel', loading: 'Loading' },
  nav: {
    label: 'Screens', links: 'Links', clicks: 'All clicks', transfer: 'Import and export', keys: 'Keys', safety: 'Safety', health: 'Health',
    barredTitle: 'This key may not see this screen', barredText: (scopes: ScopeName[]) => `It takes a key with the scope ${scopes.map(s => `${apiKeys.scopeNames[s].name} (${s})`).join(' or ')}.`,
    noneTitle: 'There is no such screen', noneText: 'The address may have been mistyped, or belong to another version.', failedTitle: 'This screen could not be loaded'
  },
  signIn: {
    title: 'Sign in',
    lead: 'Paste an API key to see and make links.',
    key: 'API key',
    hint: 'It stays in this tab’s memory. Reloading the page forgets it.',
    button: 'Sign in', busy: 'Signing in…',
    ended: 'The key is no longer valid. Sign in with another one.',
    wrong: 'This is no key of this server, or none any more.',
    scope: 'This key may do nothing here. Use one with the scope links:read.',
    first: 'Where to find one',
    firstText: 'The first start of the server writes its admin key into the file admin.key of its data folder. An admin makes further keys on the screen Keys.',
    elsewhere: 'Start page'
  },
  links: {
    title: 'Links', create: 'New link', bulk: 'Many at once',
    search: 'Search links', searchHint: 'Search title, code, tag or destination',
    state: 'State', anyState: 'Any state', tag: 'Tag', clearTag: (tag: string) => `Show links of every tag, not just ${tag}`,
    sort: 'Order', newest: 'Newest first', oldest: 'Oldest first', clicked: 'Most clicked',
    clear: 'Clear filters',
    choose: (code: string) => `Select ${code}`, chooseAll: 'Select all that are loaded',
    columns: { link: 'Short link', destination: 'Destination', tags: 'Tags', clicks: 'Clicks', state: 'State', created: 'Created', actions: 'Actions' },
    copy: (url: string) => `Copy ${url}`, tagFilter: (tag: string) => `Only links tagged ${tag}`,
    unit: (n: number) => noun(n, 'click', 'clicks'), noClicks: 'Not counted just now',
    states,
    stale: 'The server does not answer. What is shown is of before.', loading: 'Loading links', loadingMore: 'Loading more', listed: (n: number, whole: boolean) => whole ? many(n, 'link', 'links') : `${many(n, 'link', 'links')} loaded`,
    unlistedTitle: 'This key may make links, not list them', unlistedText: 'What you make here is shown until you leave. The list takes a key with the scope Read links (links:read).', words: 'Search for letters or digits: punctuation alone is no word.', tooMany: (n: number) => `Search for fewer words: at most ${number(n)}.`,
    emptyTitle: 'No links yet', emptyText: 'Paste a long address anywhere on this page, or press the button.',
    noneTitle: 'Nothing found', noneText: 'No link matches this search. Words are found at their beginnings, and a link that was just made after a few seconds.'
  },
  stats: {
    clicks: 'Clicks', people: 'People', bots: 'Bots', visitors: 'Visitors', before: 'Period before',
    visitorsHint: 'Different people, counted in each step and added up. Nobody is recognised the day after.', uncounted: 'Too many to count in this range. Days are always counted.',
    noMinutes: 'not known for minutes', lost: (at: string) => `The connection is lost. Numbers are of ${at}.`,
    impossible: { range: 'There is no such range. Choose one.', date: 'One of the two is no date.', order: 'The range ends before it begins.', long: 'The range is too long: at most ten years.' },
    range: 'Range', ranges: { '1h': 'Last hour', '24h': 'Last 24 hours', '7d': 'Last 7 days', '30d': 'Last 30 days', '90d': 'Last 90 days', '1y': 'Last 12 months', custom: 'From … to …' },
    from: 'From', to: 'To', interval: 'Steps', intervals: { minute: 'Minutes', quarter: 'Quarter hours', hour: 'Hours', day: 'Days' }, compare: 'Period before',
    overTime: 'Clicks over time', table: 'Show as a table', when: 'When', stillCounting: 'still counting',
    completeUntil: (at: string) => `Complete until ${at}.`, complete: (from: string) => `Complete since ${from}.`,
    filteredFrom: (at: string) => `Filters count single clicks, which reach back to ${at}.`,
    failed: 'The statistics could not be loaded',
    places: 'Places', sources: 'Sources', software: 'Devices', visits: 'Visits',
    dimensions: { country: 'Countries', city: 'Cities', referrer_host: 'Referrers', utm_source: 'Source', utm_medium: 'Medium', utm_campaign: 'Campaign', device: 'Types', browser: 'Browsers', os: 'Systems', language: 'Languages', trigger: 'Ways', bot: 'Bots' },
    values: {
      '(direct)': 'Direct, or not said', '(other)': 'All others', '(unknown)': 'Unknown', false: 'People', true: 'Bots', link: 'Link', qr: 'QR code', warning: 'After a warning',
      desktop: 'Desktop', mobile: 'Phone', tablet: 'Tablet', bot: 'Bot', other: 'Other'
    },
    only: (kind: string, value: string) => `${kind}: only ${value}`, drop: (kind: string, value: string) => `${kind}: ${value}, remove the filter`,
    none: 'Nothing was counted in this range.', more: (n: number) => `Show all ${number(n)}`, fewer: 'Show fewer'
  },
  one: {
    unread: 'Where it leads is for keys with the scope Read links (links:read).',
    back: 'Links', title: (code: string) => `${code}`, total: (n: number) => noun(n, 'click in all', 'clicks in all'), live: 'Live', notLive: 'Not live: the server is asked again.',
    edit: 'Edit', qr: 'QR code', share: 'Share statistics', open: (url: string) => `Open ${url}`,
    goneTitle: 'There is no such link', goneText: 'It may have been deleted, or belong to somebody else.', failed: 'The link could not be loaded',
    statistics: (code: string) => `Statistics of ${code}`
  },
  all: {
    title: 'All clicks', top: 'Most clicked links',
    orphans: (n: number, day: number) => `${many(n, 'request', 'requests')} for codes that no link has, ${number(day)} of them in the last 24 hours.`
  },
  raw: {
    title: 'Single clicks', hint: 'Newest first, in the range and with the filters above.', columns: { time: 'Time', who: 'Visitor', place: 'Place', source: 'From', device: 'Device', way: 'Way' },
    none: 'There are no such single clicks in this range. They are kept for a time that the operator chose.', noneYet: 'None of the clicks that were looked at is one of these. There are older ones.', more: 'Show older clicks', loading: 'Loading clicks', csv: 'Download CSV', csvBusy: (n: number) => `${number(n)} read…`,
    csvCut: (n: number) => `The file has the newest ${number(n)} clicks; the range has more.`, damaged: 'Part of the click log cannot be read: clicks may be missing here.', failed: 'The clicks could not be loaded',
    fresh: 'Show the newest', person: 'Person', preview: 'Preview', outcome: { redirected: '', fallback: 'Fall-back', refused: 'Refused' }
  },
  picture: { title: 'QR code', size: 'Size', pixels: (n: number) => `${number(n)} pixels`, format: 'Format', level: 'Correction', levels: { L: '7 %', M: '15 %', Q: '25 %', H: '30 %' }, download: (format: string) => `Download ${format}` },
  shares: {
    title: 'Share the statistics', lead: 'Whoever has the address may read the statistics of this link, and nothing else. It needs no key.',
    lasts: 'Ends', after: { 86400: 'After one day', 604800: 'After one week', 2592000: 'After 30 days', 31536000: 'After one year' }, make: 'Make an address', made: 'The address is shown this once', ends: (at: string) => `It ends ${at}.`,
    end: 'End all addresses', endText: 'Every address that was made for this link stops at once.', ended: 'Nothing of the link is shared any more'
  },
  transfer, apiKeys, safety, health, utm, fieldNames,
  sheet: {
    ...sheetMore,
    kept: 'What you typed before is still here.', discard: 'Discard',
    create: 'New link', edit: (code: string) => `Edit ${code}`, made: 'Your link is ready',
    url: 'Destination', urlHint: 'The address where visitors arrive.',
    alias: 'Short code', aliasHint: '3 to 64 letters, digits, - and _. Leave it empty for a random one.', aliasFree: (url: string) => `${url} is free.`,
    title: 'Title', titleHint: 'Only you see it.', tags: 'Tags', tagsHint: 'Press Enter or a comma after each.', tagRemove: (tag: string) => `Remove tag ${tag}`,
    expires: 'Expires', presets: { keep: 'Keep', never: 'Never', hour: 'In one hour', day: 'In one day', week: 'In 7 days', month: 'In 30 days', tonight: 'At the end of today', custom: 'At a date…' },
    expiresAt: 'Date and time', expiresOn: (at: string, zone: string) => `Ends ${at} (${zone}).`,
    more: 'More options',
    redirect: 'Redirect', redirects: { 301: '301, permanent', 302: '302, temporary (usual)', 307: '307, temporary, keeps the method', 308: '308, permanent, keeps the method' },
    maxClicks: 'Most clicks', maxClicksHint: 'After so many the link ends. Empty: no bound.',
    fallback: 'Fall-back address', fallbackHint: 'Where visitors go once the link has ended.',
    forward: 'Pass on the visitor’s query', index: 'Let search engines list the short link',
    utm: 'Campaign parameters', utmHint: 'They are added to the destination.',
    utmFields: { utm_source: 'Source', utm_medium: 'Medium', utm_campaign: 'Campaign', utm_term: 'Term', utm_content: 'Content' },
    changedElsewhere: 'Somebody else changed this link meanwhile. The form shows it as it is now, with your changes. Save again to keep them.',
    button: 'Create link', save: 'Save', busy: 'Saving…', another: 'Make another', done: 'Done', copy: 'Copy',
    qr: 'QR code of the short link', qrFailed: 'The QR code could not be drawn.', download: 'Download QR code (SVG)',
    preview: 'See what visitors see before they follow it',
    off: 'Turn off', on: 'Turn on', remove: 'Delete', manage: 'This link', statistics: 'Statistics',
    removeTitle: (code: string) => `Delete ${code}?`, removeText: 'Visitors will no longer arrive, and the code can never be used again. This cannot be undone.', removeSure: 'Delete for good',
    codeLong: 'The code is too long: at most 64 characters.', required: 'Enter an address.', number: 'Enter a whole number, 1 or more.', date: 'Enter a date in the future.'
  },
  bulk: {
    title: 'Many links at once', label: 'One address per line', hint: (most: number) => `At most ${number(most)}. After a space a line may have the short code to use.`,
    lines: (n: number) => many(n, 'link', 'links'), button: (n: number) => `Create ${many(n, 'link', 'links')}`, tooMany: (most: number) => `At most ${number(most)} at once.`,
    done: (made: number, refused: number) => refused ? `${many(made, 'link', 'links')} made, ${number(refused)} refused` : `${many(made, 'link', 'links')} made`,
    odd: (n: number) => `${many(n, 'line does', 'lines do')} not look like an address, and ${noun(n, 'is', 'are')} left out:`, oddSure: 'Make links of them all the same', left: (n: number) => `${many(n, 'line', 'lines')} left out.`,
    refused: 'Refused', made: 'Made', line: 'Address', outcome: 'What became of it', copyAll: 'Copy all short links', back: 'Correct the refused ones'
  },
  chosen: {
    label: 'Selected links', count: (n: number) => `${number(n)} selected`, clear: 'Clear selection', copy: 'Copy', save: 'Export', tag: 'Add tags', on: 'Turn on', off: 'Turn off', remove: 'Delete',
    tagTitle: (n: number) => `Tag ${many(n, 'link', 'links')}`, tagButton: 'Add tags', tagRequired: 'Enter a tag.',
    removeTitle: (n: number) => `Delete ${many(n, 'link', 'links')}?`, removeText: 'Visitors will no longer arrive, and the codes can never be used again. This cannot be undone.',
    done: (n: number) => `${many(n, 'link', 'links')} changed`, removed: (n: number) => `${many(n, 'link', 'links')} deleted`,
    failed: (bad: number, n: number, why: string) => `${number(bad)} of ${many(n, 'link', 'links')} stayed as they were: ${why}`
  },
  said: {
    copied: 'Copied to the clipboard', notCopied: 'The browser does not let the page copy. Select the link and copy it.',
    saved: (code: string) => `Saved ${code}`, on: (code: string) => `${code} is on`, off: (code: string) => `${code} is off`, removed: (code: string) => `Deleted ${code}`,
    undone: (what: string) => `Not done: ${what}`
  },
  keys: {
    title: 'Keyboard shortcuts', single: 'Single-key shortcuts', singleHint: 'Turn them off if you use speech input or type without looking.',
    list: [['c', 'New link'], ['b', 'Many links at once'], ['/', 'Search'], ['j', 'Next link'], ['k', 'Link before'], ['Enter', 'Open the link in focus'], ['x', 'Select the link in focus'], ['y', 'Copy the short link'], ['s', 'Statistics of the link in focus'], ['?', 'This help']] as [string, string][],
    paste: 'Pasting an address anywhere begins a link; pasting many lines begins many.'
  },
  failure: {
    offline: 'You are offline. What was loaded stays here.', unreachable: 'The server cannot be reached.',
    limited: (wait: string) => wait ? `Too many requests. Try again in ${wait}.` : 'Too many requests. Try again later.',
    scope: 'This key may not do that.', gone: 'It is not there any more.',
    server: (id?: string) => id ? `The server failed (${id}).` : 'The server failed.', title: 'Links could not be loaded', loading: 'This could not be loaded'
  }
}
