export const utm = { choose: 'Use a template', save: 'New template', name: 'Template name', keep: 'Create template', drop: 'Delete template' }

export const sheetMore = {
  domain: 'Domain', starts: 'Active from', startsHint: 'Leave blank to start immediately. Until then visitors get a 404.', startsOn: (at: string, zone: string) => `Active from ${at} (${zone}).`,
  qrAhead: 'QR code of the alias'
}

// fieldNames are the labels of what the API names otherwise.
export const fieldNames = {
  long_url: 'Destination', url: 'Destination', short_code: 'Short code', custom_alias: 'Alias', alias: 'Alias', title: 'Title', tags: 'Tags', tag: 'Tag', domain: 'Domain',
  starts_at: 'Active from', expires_at: 'Expires', expires_in: 'Expires', max_clicks: 'Click limit', fallback_url: 'Fallback URL', redirect_status: 'Redirect',
  name: 'Name', scopes: 'Permissions', workspace_id: 'Workspace', plan: 'Plan', q: 'Search', state: 'State', from: 'From', to: 'To', interval: 'Interval', reason: 'Reason'
}
