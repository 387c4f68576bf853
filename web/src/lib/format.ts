// Numbers and dates in the person's locale and zone.
const whole = new Intl.NumberFormat()
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const apart = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })

export const number = (n: number): string => whole.format(n)
export const compact = (n: number): string => n < 10_000 ? whole.format(n) : short.format(n)
export const date = (at: string | Date): string => day.format(new Date(at))
export const moment = (at: string | Date): string => minute.format(new Date(at))

// ago says how far a moment is from now, and the day where that is more than a week.
export function ago(at: string, now = Date.now()): string {
  const seconds = (Date.parse(at) - now) / 1000
  const far = Math.abs(seconds)
  if (far < 60) return apart.format(0, 'second')
  if (far < 3600) return apart.format(Math.trunc(seconds / 60), 'minute')
  if (far < 86400) return apart.format(Math.trunc(seconds / 3600), 'hour')
  if (far < 7 * 86400) return apart.format(Math.trunc(seconds / 86400), 'day')
  return date(at)
}

// local writes a moment as <input type="datetime-local"> wants it, in the person's zone.
export function local(at: Date): string {
  const two = (n: number) => String(n).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`
}

// zone is the name of the person's zone.
export const zone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone
