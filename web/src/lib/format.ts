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

const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 })
export const share = (part: number, of: number): string => percent.format(of === 0 ? 0 : part / of)

// change says how much more or less something is than it was: +12 %.
const signed = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 0, signDisplay: 'exceptZero' })
export const change = (now: number, was: number): string => signed.format((now - was) / was)

// Of a step of a series: on the axis, and where it is named.
const clock = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' })
const near = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })
const seconds = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' })
export const time = (at: Date): string => clock.format(at)
export const monthDay = (at: Date): string => near.format(at)
export const exactTime = (at: string): string => seconds.format(new Date(at))

// span says how long something takes, in its largest unit; size how large something is.
export function span(seconds: number): string {
  const [n, unit] = seconds < 90 ? [seconds, 'second'] : seconds < 5400 ? [seconds / 60, 'minute'] : seconds < 48 * 3600 ? [seconds / 3600, 'hour'] : [seconds / 86400, 'day']
  return new Intl.NumberFormat(undefined, { style: 'unit', unit, unitDisplay: 'long', maximumFractionDigits: 0 }).format(Math.max(0, Math.round(n)))
}

export function size(bytes: number): string {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']
  let n = bytes, i = 0
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000
  return new Intl.NumberFormat(undefined, { style: 'unit', unit: units[i]!, unitDisplay: i === 0 ? 'long' : 'short', maximumFractionDigits: n < 10 && i > 0 ? 1 : 0 }).format(n)
}
