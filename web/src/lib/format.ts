// Numbers and dates in the person's locale and zone. Each format is made when it is first
// wanted: all of them together take longer than a small screen.
import { once } from './once'

const whole = once(() => new Intl.NumberFormat())
const short = once(() => new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 }))
const day = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' }))
const minute = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' }))
const second = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }))
const apart = once(() => new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' }))

// warm makes what the first screen needs while nobody waits for it: the first format of
// all has the browser read its tables.
export function warm(): void {
  number(1000)
  ago(new Date().toISOString())
  zone()
}

// Languages that write 0 to 9 and no sign in a number below a thousand: most numbers of a
// first screen need no format then, of which the first costs as much as the screen's rows.
const latin = /^(cs|da|de|en|es|fi|fr|it|ja|ko|nb|nl|pl|pt|ru|sv|tr|uk|zh)\b(?!.*-u-)/.test(navigator.language)
const small = (n: number): boolean => latin && n >= 0 && n < 1000 && Number.isInteger(n)

export const number = (n: number): string => small(n) ? String(n) : whole().format(n)
export const compact = (n: number): string => n < 10_000 ? number(n) : short().format(n)
export const date = (at: string | Date): string => day().format(new Date(at))
export const exactly = (at: string): string => second().format(new Date(at))
export const moment = (at: string | Date): string => minute().format(new Date(at))

// ago says how far a moment is from now, and the day where that is more than a week.
export function ago(at: string, now = Date.now()): string {
  const seconds = (Date.parse(at) - now) / 1000
  const far = Math.abs(seconds)
  if (far < 60) return apart().format(0, 'second')
  if (far < 3600) return apart().format(Math.trunc(seconds / 60), 'minute')
  if (far < 86400) return apart().format(Math.trunc(seconds / 3600), 'hour')
  if (far < 7 * 86400) return apart().format(Math.trunc(seconds / 86400), 'day')
  return date(at)
}

// local writes a moment as <input type="datetime-local"> wants it, in the person's zone.
export function local(at: Date): string {
  const two = (n: number) => String(n).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`
}

// zone is the name of the person's zone.
export const zone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone

const percent = once(() => new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 }))
export const share = (part: number, of: number): string => percent().format(of === 0 ? 0 : part / of)

// change says how much more or less something is than it was: +12 %.
const signed = once(() => new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 0, signDisplay: 'exceptZero' }))
export const change = (now: number, was: number): string => signed().format((now - was) / was)

// Of a step of a series: on the axis, and where it is named.
const clock = once(() => new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' }))
const near = once(() => new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' }))
const seconds = once(() => new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' }))
// zoned tells apart the two hours of the day on which clocks are set back.
const named = once(() => new Intl.DateTimeFormat(undefined, { year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', timeZoneName: 'short' }))
export const zoned = (at: string | Date): string => named().format(new Date(at))
export const clocksChange = (from: string, to: string): boolean => new Date(from).getTimezoneOffset() !== new Date(to).getTimezoneOffset()
export const time = (at: Date): string => clock().format(at)
export const monthDay = (at: Date): string => near().format(at)
export const exactTime = (at: string): string => seconds().format(new Date(at))

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
