export const utm = { choose: 'Use a template', save: 'Keep as a template', name: 'Name of the template', keep: 'Keep', drop: 'Forget it' }

export const sheetMore = {
  domain: 'Domain', starts: 'Starts', startsHint: 'Empty: at once. Before it visitors find nothing.', startsOn: (at: string, zone: string) => `Begins ${at} (${zone}).`,
  qrAhead: 'QR code of the short code'
}

// fieldNames are the labels of what the API names otherwise.
export const fieldNames = {
  long_url: 'Destination', url: 'Destination', custom_alias: 'Short code', alias: 'Short code', title: 'Title', tags: 'Tags', tag: 'Tag', domain: 'Domain',
  starts_at: 'Starts', expires_at: 'Expires', expires_in: 'Expires', max_clicks: 'Most clicks', fallback_url: 'Fall-back address', redirect_status: 'Redirect',
  name: 'Name', scopes: 'What it may do', workspace_id: 'Workspace', plan: 'Plan', q: 'Search', state: 'State', from: 'From', to: 'To', interval: 'Steps', reason: 'Reason'
}
