export const utm = { choose: 'Use a template', save: 'Keep as a template', name: 'Name of the template', keep: 'Keep', drop: 'Forget it' }

export const sheetMore = {
  domain: 'Domain', starts: 'Starts', startsHint: 'Empty: at once. Before it visitors find nothing.', startsOn: (at: string, zone: string) => `Begins ${at} (${zone}).`,
  qrAhead: 'QR code of the short code'
}
