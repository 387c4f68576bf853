import { number, span } from '../lib/format'
import { many } from './plural'

const safeties = { clean: 'Clean', warn: 'Flagged', quarantined: 'Quarantined', blocked: 'Blocked', legal: 'Taken down (legal)' }
export type SafetyName = keyof typeof safeties

const does: Record<SafetyName, string> = {
  clean: 'Visitors are redirected.', warn: 'Visitors see a warning first.', quarantined: 'Visitors see a warning first, until a moderator decides.',
  blocked: 'Visitors get an error (403).', legal: 'Visitors get an error with a legal notice (451).'
}

export const safety = {
  title: 'Moderation', label: 'Moderation sections', tabs: { queue: 'Reviews', bans: 'Bans', lists: 'Lists', journal: 'Journal' },
  safeties, does,
  verbs: { clean: 'Mark clean', warn: 'Flag', quarantined: 'Quarantine', blocked: 'Block', legal: 'Take down (legal)' } as Record<SafetyName, string>,
  sources: { policy: 'Policy', report: 'Report', appeal: 'Appeal', blocked: 'Refused create' },
  categories: { phishing: 'Phishing', malware: 'Malware', spam: 'Spam', illegal: 'Illegal', other: 'Other' },
  queue: {
    state: 'Status', states: { open: 'Open', closed: 'Closed' }, source: 'Source', anySource: 'All sources', category: 'Category', anyCategory: 'All categories',
    score: 'Minimum score', host: 'Host', hostHint: 'evil.example', overdue: 'Only overdue', sort: 'Sort by', sorts: { '': 'Due soonest', '-score': 'Highest score', '-reports': 'Most reports', '-opened_at': 'Newest' } as Record<string, string>,
    clear: 'Clear filters', columns: { link: 'Link', why: 'Reason', due: 'Due', now: 'Safety', decided: 'Decided' },
    choose: (code: string) => `Select ${code}`, chooseAll: 'Select all loaded', open: (code: string) => `Review ${code}`,
    scored: (n: number) => `Score ${number(n)}`, reports: (n: number) => many(n, 'report', 'reports'), gone: 'Deleted',
    due: (seconds: number) => `${span(seconds)} left`, late: (seconds: number) => `${span(seconds)} overdue`,
    listed: (n: number, whole: boolean) => whole ? many(n, 'review', 'reviews') : `${many(n, 'review', 'reviews')} loaded`, more: 'Show more',
    emptyTitle: 'Queue is empty', emptyText: 'Reported, appealed and flagged links appear here.', noneTitle: 'No results', noneText: 'No review matches these filters.'
  },
  chosen: { label: 'Selected reviews', count: (n: number) => `${number(n)} selected`, clear: 'Clear selection' },
  decide: {
    title: (verb: string, n: number) => `${verb} ${many(n, 'link', 'links')}`, reason: 'Reason', reasonHint: 'Recorded in the journal. Not shown to visitors.', required: 'Enter a reason.', busy: 'Deciding…', answer: 'Reply to the owner', answerHint: 'Visible to the owner.',
    done: (n: number, what: string) => `${many(n, 'link', 'links')} changed to: ${what}`, undo: 'Undo', undone: (n: number) => `${many(n, 'link', 'links')} restored. The journal keeps both decisions; the reviews stay closed.`,
    undoReason: (reason: string) => `Undone: ${reason}`, failed: (bad: number, n: number, why: string) => `${number(bad)} of ${many(n, 'link', 'links')} not changed: ${why}`
  },
  file: {
    title: (code: string) => `Review of ${code}`, leads: 'Redirects to', workspace: 'Workspace', none: 'This link was never under review.', safety: 'Safety', findings: 'Signals', noFindings: 'None.', points: (n: number) => `${number(n)} points`,
    reported: 'Reports', contact: 'Contact', erased: 'Erased', appeal: 'Appeal', answered: 'Answered', unanswered: 'Not answered yet', history: 'History', noHistory: 'None.', decide: 'Decide', answerAppeal: 'Answer appeal',
    erase: 'Erase reporter data', eraseSure: 'Erase permanently', eraseText: 'Erases texts and contacts of reports, and reasons and answers of appeals. Counts and decisions stay.', wasErased: 'Reporter data erased', copy: 'Copy the destination'
  },
  case: {
    title: 'Refused create', row: 'Refused create', leads: 'Destination', creates: 'Refused', forAll: 'for all workspaces', does: 'Applies to new links to exactly this URL. No link is created: the creator sends it again.',
    everyone: 'For all workspaces', reply: 'Send the reason to the creator as the reply to the appeal', allow: 'Allow', refuse: 'Refuse', allowed: 'Destination allowed', refused: 'Destination refused'
  },
  bans: {
    create: 'New ban', lead: 'Bans block new and existing links, newest first.',
    kinds: { host: 'Host', domain: 'Host and subdomains', link: 'Link', workspace: 'Workspace', key: 'Key', network: 'Network' },
    examples: { host: 'evil.example', domain: 'evil.example', link: 'code, or domain/code', workspace: 'acme', key: 'key id', network: '192.0.2.0/24' },
    kind: 'Type', name: 'Name', safety: 'Action', reason: 'Reason', reasonHint: 'Recorded in the journal.', required: 'Enter a name.', reasonRequired: 'Enter a reason.',
    previewing: 'Counting links…', preview: (n: number, whole: boolean) => whole ? `Affects ${many(n, 'link', 'links')}.` : `Affects at least ${many(n, 'link', 'links')}; not all links were checked.`, sample: 'Examples', previewTitle: 'Preview',
    button: 'Ban', made: (name: string) => `Banned ${name}`, columns: { name: 'Banned', safety: 'Action', reason: 'Reason', at: 'Since', actions: 'Actions' },
    walk: (seen: number, changed: number) => `Checking links: ${number(seen)} checked, ${number(changed)} changed`, by: (who: string) => `by ${who}`,
    lift: 'Lift', liftTitle: (name: string) => `Lift the ban on ${name}?`, liftText: 'Affected links return to the safety that they have without the ban.', liftReason: 'Reason', liftSure: 'Lift ban', lifted: (name: string) => `Lifted the ban on ${name}`,
    listed: (n: number, whole: boolean) => whole ? many(n, 'ban', 'bans') : `${many(n, 'ban', 'bans')} loaded`, more: 'Show more', emptyTitle: 'No bans', emptyText: 'Ban a host, a workspace, a key or a network when deciding link by link is not enough.'
  },
  lists: {
    list: 'List', names: { refused_words: 'Refused words', look_alikes: 'Look-alikes', blocked_destinations: 'Blocked destinations', allowed_destinations: 'Allowed destinations' },
    leads: {
      refused_words: 'No new link gets these aliases.', look_alikes: 'No new link gets an alias that looks like these names.',
      blocked_destinations: 'Bans of domains: new and existing links are blocked.', allowed_destinations: 'The score and lists in files do not apply to these destinations. Bans do.'
    },
    hints: {
      refused_words: 'One per line: a word, word* or ~word.', look_alikes: 'One per line: a name, ~name without typing errors, or !alias to allow one.',
      blocked_destinations: 'One per line: evil.example, with all hosts below it, or an IP address.', allowed_destinations: 'One per line: good.example, with all hosts below it, or an IP address.'
    },
    add: 'Add entries', entries: 'Entries', required: 'Enter at least one entry.', added: (n: number, same: number) => `${many(n, 'entry', 'entries')} added` + (same > 0 ? `, ${number(same)} already in the list` : ''),
    columns: { value: 'Entry', reason: 'Reason', at: 'Since', actions: 'Actions' }, remove: 'Remove', removed: (value: string) => `Removed ${value}`,
    builtin: (n: number) => `${many(n, 'built-in entry', 'built-in entries')}`, disable: 'Disable', enable: 'Enable', disabled: (value: string) => `Disabled ${value}`, disabledReason: 'Disabled in the dashboard',
    export: 'Export', listed: (n: number, whole: boolean) => whole ? many(n, 'entry', 'entries') : `${many(n, 'entry', 'entries')} loaded`, more: 'Show more', emptyTitle: 'No entries', emptyText: 'Entries take effect on every server within a second.'
  },
  journal: {
    kinds: { host: 'Host', domain: 'Host and subdomains', link: 'Link', workspace: 'Workspace', key: 'Key', network: 'Network', refused_word: 'Refused word', look_alike: 'Look-alike', allowed_destination: 'Allowed destination' },
    entity: 'Entity', entityHint: 'link:CODE, host:evil.example, workspace:acme …', actor: 'Actor', actorHint: 'key id, admin or policy', find: 'Search', clear: 'Clear filters',
    actions: { decide: 'Decided', ban: 'Banned', lift: 'Lifted', answer: 'Answered', erase: 'Erased texts', list: 'Added to a list', unlist: 'Removed from a list' }, columns: { at: 'Time', what: 'Action', about: 'Entity', by: 'Actor', why: 'Reason' },
    evidence: 'Evidence', erased: 'Erased', listed: (n: number, whole: boolean) => whole ? many(n, 'entry', 'entries') : `${many(n, 'entry', 'entries')} loaded`, more: 'Show more', emptyTitle: 'No entries yet', emptyText: 'Every decision is recorded here with its actor and reason, in a tamper-evident hash chain.', noneTitle: 'No results', noneText: 'No entry matches these filters.'
  }
}
