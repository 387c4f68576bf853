import { many } from './plural'

export type ScopeName = 'links:read' | 'links:write' | 'stats:read' | 'admin'

const scopes: Record<ScopeName, { name: string, says: string }> = {
  'links:read': { name: 'Read links', says: 'View links and their QR codes.' },
  'links:write': { name: 'Write links', says: 'Create, edit and delete links.' },
  'stats:read': { name: 'Read statistics', says: 'View and share statistics.' },
  admin: { name: 'Admin', says: 'Full access to all workspaces, API keys, moderation and health.' }
}

export const apiKeys = {
  title: 'API keys', lead: 'Keys authenticate API requests. Scopes limit what a key can do in its workspace.',
  create: 'New key', name: 'Name', nameHint: 'Such as the name of the app that uses it.', scopes: 'Permissions', scopeNames: scopes,
  workspace: 'Workspace', workspaceHint: 'a–z, 0–9, - and _. New names create a workspace. Admin keys belong to default.',
  plan: 'Plan of the workspace', planHint: 'Its limits apply to all keys of the workspace.', keep: 'Unchanged',
  plans: { free: 'Free', verified: 'Verified', registered: 'Registered', default: 'Default' },
  expires: 'Expires', presets: { never: 'Never', day: 'In 1 day', month: 'In 30 days', quarter: 'In 90 days', year: 'In 1 year', custom: 'Custom…' },
  button: 'Create key', required: 'Enter a name.', scopeRequired: 'Choose at least one permission.', date: 'Enter a date in the future.',
  made: 'Your API key', once: 'Copy it now. It won’t be shown again.', copied: 'Done', copy: 'Copy key', secret: 'Secret key',
  columns: { name: 'Name', scopes: 'Permissions', workspace: 'Workspace', used: 'Last used', expires: 'Expires', actions: 'Actions' },
  never: 'Never', neverUsed: 'Never', expired: (at: string) => `Expired ${at}`, created: (at: string) => `Created ${at}`, own: 'this key',
  rotate: 'Rotate', rotateTitle: (name: string) => `Rotate ${name}?`, rotateText: 'The key gets a new secret. Its name and permissions stay the same.',
  overlap: 'Keep the old secret valid for', overlaps: [[0, 'Revoke immediately'], [3600, '1 hour'], [86400, '1 day'], [604800, '7 days']] as [number, string][], rotateButton: 'Rotate key',
  revoke: 'Revoke', revokeTitle: (name: string) => `Revoke ${name}?`, revokeText: 'All requests with this key will be refused. Its links stay; its share links end. This cannot be undone.', keepShares: 'Keep its share links', revokeOwn: 'You are signed in with this key.', revokeSure: 'Revoke key',
  revoked: (name: string) => `Revoked ${name}`, listed: (n: number, whole: boolean) => whole ? many(n, 'key', 'keys') : `${many(n, 'key', 'keys')} loaded`, more: 'Show more',
  all: 'All workspaces', filter: 'Workspace',
  emptyTitle: 'No keys yet', emptyText: 'Create one per app so you can revoke it separately. The admin key is not listed.'
}
