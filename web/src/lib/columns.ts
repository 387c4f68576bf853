// The names that other shorteners' exports and people give to the fields of a link,
// without case, spaces and signs; of several columns for one field the one whose name
// stands first counts. The command line reads files by the same names.
export const fields = ['long_url', 'short_code', 'title', 'tags', 'domain', 'starts_at', 'expires_at', 'max_clicks', 'redirect_status',
  'fallback_url', 'forward_query', 'noindex', 'cacheable', 'status'] as const
export type ImportField = typeof fields[number]

const synonyms: Partial<Record<ImportField, string>> = {
  long_url: 'longurl destinationurl destination originalurl original targeturl target redirecturl redirectto longlink url location',
  short_code: 'shortcode custombitlinks custombitlink custombackhalf customalias backhalf alias slug keyword code key slashtag path address vanity shorturl shortlink bitlink tinyurl short link',
  title: 'title name label description note comment',
  tags: 'tags tag labels',
  starts_at: 'startsat validsince startdate',
  expires_at: 'expiresat expires expireat expirydate expirationdate expiration expire validuntil expirein',
  max_clicks: 'maxclicks maxvisits clicklimit clickslimit',
  redirect_status: 'redirectstatus redirecttype redirectcode statuscode',
  fallback_url: 'fallbackurl expiredurl expiredredirecturl',
  forward_query: 'forwardquery',
  noindex: 'noindex',
  cacheable: 'cacheable'
}

const bare = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')

// understand finds out which field each name stands for; '' = none.
export function understand(names: string[]): (ImportField | '')[] {
  const plain = names.map(bare)
  const found: (ImportField | '')[] = names.map(() => '')
  for (const [field, words] of Object.entries(synonyms) as [ImportField, string][]) {
    const word = words.split(' ').find(w => plain.some((p, i) => p === w && found[i] === ''))
    if (word !== undefined) found[plain.findIndex((p, i) => p === word && found[i] === '')] = field
  }
  // The domains and states of others are none of ours.
  const ours = names.some(n => n.trim() === 'long_url') && !found.some((f, i) => f === 'short_code' && !['short_code', 'custom_alias'].includes(names[i]!.trim()))
  if (ours) for (const field of ['domain', 'status'] as const) {
    const i = plain.indexOf(field)
    if (i >= 0 && found[i] === '') found[i] = field
  }
  return found
}

// withoutHeader reads the first line of a file that begins with a link: an address, or
// an address and a code, in either order. undefined: it begins with something else.
export function withoutHeader(cells: string[]): (ImportField | '')[] | undefined {
  const at = cells.slice(0, 2).findIndex(c => c.includes('://'))
  if (at < 0) return undefined
  return cells.map((_, i) => i === at ? 'long_url' : i < 2 ? 'short_code' : '')
}

// codeOf returns the code of a cell that may be a whole short URL, or a list of them, of
// which the first counts.
export function codeOf(text: string): string {
  const first = text.replace(/^[[\]"' ]+|[[\]"' ]+$/g, '').split(',')[0]!.split('?')[0]!.replace(/^["' /]+|["' /]+$/g, '')
  return first.slice(first.lastIndexOf('/') + 1)
}
