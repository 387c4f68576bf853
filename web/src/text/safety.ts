import { number, span } from '../lib/format'
import { many } from './plural'

const safeties = { clean: 'Clean', warn: 'Warning', quarantined: 'Quarantined', blocked: 'Blocked', legal: 'Withheld' }
export type SafetyName = keyof typeof safeties

const does: Record<SafetyName, string> = {
  clean: 'Visitors are led on.', warn: 'Visitors see a warning first.', quarantined: 'Visitors see a warning first, until somebody decides.',
  blocked: 'Visitors are stopped (403).', legal: 'Visitors are stopped, for a legal reason (451).'
}

export const safety = {
  title: 'Safety', label: 'Parts of safety', tabs: { queue: 'Reviews', bans: 'Bans', journal: 'Journal' },
  safeties, does,
  verbs: { clean: 'Mark clean', warn: 'Warn', quarantined: 'Quarantine', blocked: 'Block', legal: 'Withhold' } as Record<SafetyName, string>,
  sources: { policy: 'Policy', report: 'Reported', appeal: 'Appeal' },
  categories: { phishing: 'Phishing', malware: 'Malware', spam: 'Spam', illegal: 'Illegal', other: 'Other' },
  queue: {
    state: 'Show', states: { open: 'Waiting', closed: 'Decided' }, source: 'Brought by', anySource: 'Anything', category: 'Reported for', anyCategory: 'Anything',
    score: 'Least score', host: 'Host', hostHint: 'evil.example', overdue: 'Only overdue', sort: 'Order', sorts: { '': 'Due first', '-score': 'Highest score', '-reports': 'Most reports', '-opened_at': 'Newest' } as Record<string, string>,
    clear: 'Clear filters', columns: { link: 'Link', why: 'Why', due: 'Due', now: 'Now', decided: 'Decided' },
    choose: (code: string) => `Select ${code}`, chooseAll: 'Select all that are loaded', open: (code: string) => `Review ${code}`,
    scored: (n: number) => `Score ${number(n)}`, reports: (n: number) => many(n, 'report', 'reports'), gone: 'Deleted',
    due: (seconds: number) => `${span(seconds)} left`, late: (seconds: number) => `${span(seconds)} overdue`,
    listed: (n: number, whole: boolean) => whole ? many(n, 'review', 'reviews') : `${many(n, 'review', 'reviews')} loaded`, more: 'Show more',
    emptyTitle: 'Nothing waits', emptyText: 'Links that are reported, appealed for or held back by the policy come here by themselves.', noneTitle: 'Nothing found', noneText: 'No review matches these filters.'
  },
  chosen: { label: 'Selected reviews', count: (n: number) => `${number(n)} selected`, clear: 'Clear selection' },
  decide: {
    title: (verb: string, n: number) => `${verb} ${many(n, 'link', 'links')}`, reason: 'Reason', reasonHint: 'For the journal. Visitors never see it.', required: 'Say why.', busy: 'Deciding…', answer: 'Answer to the owner', answerHint: 'The owner reads it.',
    done: (n: number, what: string) => `${many(n, 'link is', 'links are')} now: ${what}`, undo: 'Undo', undone: (n: number) => `${many(n, 'link is', 'links are')} as before. The journal has both decisions, and the reviews stay decided.`,
    undoReason: (reason: string) => `Undone: ${reason}`, failed: (bad: number, n: number, why: string) => `${number(bad)} of ${many(n, 'link', 'links')} stayed as they were: ${why}`
  },
  file: {
    title: (code: string) => `Review of ${code}`, leads: 'Leads to', workspace: 'Workspace', none: 'This link was never under review.', safety: 'Now', findings: 'What the policy saw', noFindings: 'Nothing.', points: (n: number) => `${number(n)} points`,
    reported: 'What was reported', contact: 'Contact', erased: 'Erased', appeal: 'Appeal', answered: 'Answered', unanswered: 'Not answered yet', history: 'What was decided before', noHistory: 'Nothing yet.', decide: 'Decide', answerAppeal: 'Answer the appeal',
    erase: 'Erase what strangers wrote', eraseSure: 'Erase for good', eraseText: 'Texts and contacts of reports, and reasons of appeals with their answers, are erased. Counts and decisions stay.', wasErased: 'The texts are gone', copy: 'Copy the destination'
  },
  bans: {
    create: 'New ban', lead: 'A ban stops what is made from now on, and what is there already, newest links first.',
    kinds: { host: 'Host', domain: 'Host and all below it', link: 'Link', workspace: 'Workspace', key: 'Key', network: 'Network' },
    examples: { host: 'evil.example', domain: 'evil.example', link: 'code, or domain/code', workspace: 'acme', key: 'the id of a key', network: '192.0.2.0/24' },
    kind: 'What to ban', name: 'Name', safety: 'What links become', reason: 'Reason', reasonHint: 'For the journal.', required: 'Enter a name.', reasonRequired: 'Say why.',
    previewing: 'Counting links…', preview: (n: number, whole: boolean) => whole ? `It means ${many(n, 'link', 'links')}.` : `It means at least ${many(n, 'link', 'links')}; not all were looked at.`, sample: 'Some of them', previewTitle: 'What it would do',
    button: 'Ban', made: (name: string) => `Banned ${name}`, columns: { name: 'Banned', safety: 'Links become', reason: 'Reason', at: 'Since', actions: 'Actions' },
    walk: (seen: number, changed: number) => `Looking at links: ${number(seen)} seen, ${number(changed)} changed`, by: (who: string) => `by ${who}`,
    lift: 'Lift', liftTitle: (name: string) => `Lift the ban of ${name}?`, liftText: 'Links that it meant get the safety that they have without it.', liftReason: 'Reason', liftSure: 'Lift the ban', lifted: (name: string) => `Lifted the ban of ${name}`,
    listed: (n: number, whole: boolean) => whole ? many(n, 'ban', 'bans') : `${many(n, 'ban', 'bans')} loaded`, more: 'Show more', emptyTitle: 'No bans', emptyText: 'Ban a host, a workspace, a key or a network when deciding link by link is not enough.'
  },
  journal: {
    entity: 'About', entityHint: 'link:CODE, host:evil.example, workspace:acme …', actor: 'By', actorHint: 'the id of a key, admin or policy', find: 'Find', clear: 'Clear filters',
    actions: { decide: 'Decided', ban: 'Banned', lift: 'Lifted', answer: 'Answered', erase: 'Erased texts' }, columns: { at: 'When', what: 'What', about: 'About', by: 'By', why: 'Why' },
    evidence: 'Evidence', erased: 'Erased', listed: (n: number, whole: boolean) => whole ? many(n, 'entry', 'entries') : `${many(n, 'entry', 'entries')} loaded`, more: 'Show more', emptyTitle: 'Nothing yet', emptyText: 'Every decision stands here, with who made it and why, in a chain that cannot be changed unseen.', noneTitle: 'Nothing found', noneText: 'No entry matches.'
  }
}
