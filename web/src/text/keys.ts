import { many } from './plural'

export type ScopeName = 'links:read' | 'links:write' | 'stats:read' | 'admin'

const scopes: Record<ScopeName, { name: string, says: string }> = {
  'links:read': { name: 'Read links', says: 'See links and their QR codes.' },
  'links:write': { name: 'Write links', says: 'Make, change and delete links.' },
  'stats:read': { name: 'Read statistics', says: 'See clicks, and share statistics.' },
  admin: { name: 'Admin', says: 'Everything, in every workspace: keys, safety, health.' }
}

export const apiKeys = {
  title: 'API keys', lead: 'Programs and people show a key with each request. It may do what its scopes say, in its workspace.',
  create: 'New key', name: 'Name', nameHint: 'What it is for, such as the program that has it.', scopes: 'What it may do', scopeNames: scopes,
  workspace: 'Workspace', workspaceHint: 'a–z, 0–9, - and _. One that is new is made. Admin keys belong to default.',
  plan: 'Plan of the workspace', planHint: 'Its limits hold for all keys of the workspace.', keep: 'As it is',
  plans: { free: 'Free', verified: 'Verified', registered: 'Registered', default: 'Default' },
  expires: 'Expires', presets: { never: 'Never', day: 'In one day', month: 'In 30 days', quarter: 'In 90 days', year: 'In a year', custom: 'At a date…' },
  button: 'Make the key', required: 'Say what the key is for.', scopeRequired: 'Choose at least one.', date: 'Enter a date in the future.',
  made: 'The key', once: 'Copy it now. It is shown this once and stored nowhere.', copied: 'I have it', copy: 'Copy the key', secret: 'The key itself',
  columns: { name: 'Name', scopes: 'May', workspace: 'Workspace', used: 'Last used', expires: 'Expires', actions: 'Actions' },
  never: 'Never', neverUsed: 'Not yet', expired: (at: string) => `Expired ${at}`, created: (at: string) => `Made ${at}`, own: 'this key',
  rotate: 'Rotate', rotateTitle: (name: string) => `Rotate ${name}?`, rotateText: 'The key gets another secret. Name, scopes and statistics stay.',
  overlap: 'The secret before goes on for', overlaps: [[0, 'no time: it stops at once'], [3600, 'one hour'], [86400, 'one day'], [604800, '7 days']] as [number, string][], rotateButton: 'Make a new secret',
  revoke: 'Revoke', revokeTitle: (name: string) => `Revoke ${name}?`, revokeText: 'Every request with it is refused from now on. Its links stay. Addresses of shared statistics that it made end. This cannot be undone.', keepShares: 'Keep the addresses that it shared', revokeOwn: 'It is the key that you are signed in with.', revokeSure: 'Revoke for good',
  revoked: (name: string) => `Revoked ${name}`, listed: (n: number, whole: boolean) => whole ? many(n, 'key', 'keys') : `${many(n, 'key', 'keys')} loaded`, more: 'Show more',
  all: 'All workspaces', filter: 'Only of workspace',
  emptyTitle: 'No keys yet', emptyText: 'The admin key, which is not in this list, is all there is. Make one for each program, so that each can be revoked alone.'
}
