// The part of time that is looked at, in whole steps of the person's clock.
export type Interval = 'minute' | 'quarter' | 'hour' | 'day'
export type Range = '1h' | '24h' | '7d' | '30d' | '90d' | '1y' | 'custom'

export const ranges: Range[] = ['1h', '24h', '7d', '30d', '90d', '1y', 'custom']
export interface Window { from: Date, to: Date, interval: Interval }

const hour = 3_600_000
const days: Partial<Record<Range, number>> = { '7d': 7, '30d': 30, '90d': 90, '1y': 365 }

// intervals are the steps that make a picture of so many hours: neither a handful nor
// thousands. The first is the one that is taken unless another is chosen.
function intervals(hours: number): Interval[] {
  if (hours <= 3) return ['minute', 'quarter']
  if (hours <= 36) return ['hour', 'quarter']
  if (hours <= 10 * 24) return ['hour', 'day', 'quarter']
  return hours <= 32 * 24 ? ['day', 'hour'] : ['day']
}

const midnight = (at: Date, plus = 0): Date => new Date(at.getFullYear(), at.getMonth(), at.getDate() + plus)

// dayOf reads what <input type="date"> says.
function dayOf(text: string): Date | undefined {
  const at = new Date(text + 'T00:00')
  return /^\d{4}-\d\d-\d\d$/.test(text) && at.getDate() === Number(text.slice(8)) ? at : undefined
}

export interface Asked { range: string, interval: string, from: string, to: string }

// Impossible is why there is no such window. Numbers of another one must not be shown then.
export type Impossible = 'range' | 'date' | 'order' | 'long'
const longest = 3650 // days

// windowOf returns what is asked for, and the steps that it may have. Where nothing is asked
// for it is the last 30 days; so it is where what is asked for is impossible, and says why.
export function windowOf(asked: Asked, now: Date): { range: Range, window: Window, intervals: Interval[], impossible?: Impossible } {
  const usual = asked.from + asked.to === '' ? '30d' : 'custom'
  const range = ranges.find(r => r === asked.range) ?? usual
  let impossible: Impossible | undefined = asked.range === '' || range === asked.range ? undefined : 'range'
  let from = midnight(now, -29)
  let to = midnight(now, 1)
  if (range === 'custom') {
    const begin = asked.from === '' ? from : dayOf(asked.from), end = asked.to === '' ? midnight(now) : dayOf(asked.to)
    if (!begin || !end) impossible ??= 'date'
    else if (begin > end) impossible ??= 'order'
    else if (end.getTime() - begin.getTime() >= longest * 24 * hour) impossible ??= 'long'
    else {
      from = begin
      to = midnight(end, 1)
    }
  } else if (range === '1h' || range === '24h') {
    const span = range === '1h' ? hour : 24 * hour
    const step = asked.interval === 'quarter' ? hour / 4 : range === '1h' ? hour / 60 : hour
    const back = now.getTimezoneOffset() * 60_000 // clocks that are half an hour off have hours of their own
    to = new Date(Math.ceil((now.getTime() - back) / step) * step + back)
    from = new Date(to.getTime() - span)
  } else {
    from = midnight(now, 1 - (days[range] ?? 30))
  }
  const may = intervals((to.getTime() - from.getTime()) / hour)
  return { range, window: { from, to, interval: may.find(i => i === asked.interval) ?? may[0]! }, intervals: may, ...(impossible && { impossible }) }
}

// before is the window of the same length that ends where w begins.
export function before(w: Window): Window {
  const length = Math.round((w.to.getTime() - w.from.getTime()) / (24 * hour))
  const whole = midnight(w.from).getTime() === w.from.getTime() && midnight(w.to).getTime() === w.to.getTime()
  return { from: whole ? midnight(w.from, -length) : new Date(2 * w.from.getTime() - w.to.getTime()), to: w.from, interval: w.interval }
}
