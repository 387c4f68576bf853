// What the statistics say about a window, and about the one before.
import { aborted, type Answer } from '../api/client'
import { zone } from './format'
import { before, type Window } from './window'

// dimensions are what clicks are told apart by, as the API names them.
export const dimensions = ['country', 'city', 'referrer_host', 'utm_source', 'utm_medium', 'utm_campaign', 'device', 'browser', 'os', 'language', 'trigger'] as const
export type Dimension = typeof dimensions[number]

// Filters are what clicks must be to be counted.
export type Filters = Partial<Record<Dimension, string>> & { bot?: boolean }

// filtersOf reads filters from an address, where people may have written anything.
export function filtersOf(get: (name: string) => string): Filters {
  const filters: Filters = {}
  for (const d of dimensions) {
    if (get(d) !== '') filters[d] = get(d)
  }
  const bot = get('bot')
  if (bot === 'true' || bot === 'false') filters.bot = bot === 'true'
  return filters
}

const top = 50

// questionsOf are what the API is asked about a window: what is shown, and what it is
// compared with.
export function questionsOf(window: Window, filters: Filters, compared: boolean): [Query, Query | undefined] {
  const query = (w: Window): Query => ({ ...filters, from: w.from.toISOString(), to: w.to.toISOString(), interval: w.interval, tz: zone() })
  return [{ ...query(window), dimensions: dimensions.join(), top }, compared ? query(before(window)) : undefined]
}

// Query is what the API is asked.
export type Query = Filters & { from: string, to: string, interval: Window['interval'], tz: string, dimensions?: string, top?: number }
export type Ask = (query: Query, signal: AbortSignal) => Promise<Answer>

export interface Shown { window: Window, now: Answer, before: Answer | undefined }

export class Stats {
  shown = $state.raw<Shown>()
  loading = $state(true)
  failed = $state.raw<unknown>()
  #ask: Ask
  #going?: AbortController

  constructor(ask: Ask) { this.#ask = ask }

  // load asks for a window; what was shown stays until the answer is there. Asked quietly,
  // a failure changes nothing.
  async load(window: Window, filters: Filters, compared: boolean, quiet = false): Promise<void> {
    this.#going?.abort()
    const { signal } = this.#going = new AbortController()
    if (!quiet) {
      this.loading = true
      this.failed = undefined
    }
    const [shown, past] = questionsOf(window, filters, compared)
    try {
      const [now, then] = await Promise.all([
        this.#ask(shown, signal),
        past && this.#ask(past, signal).then(a => reaches(a, before(window)), missing)
      ])
      if (signal.aborted) return
      this.shown = { window, now, before: then }
      this.failed = undefined
    } catch (e) {
      if (aborted(e) || signal.aborted) return
      if (!quiet) this.failed = e
    }
    this.loading = false
  }

  stop() { this.#going?.abort() }

  // clear shows nothing: what was asked for is impossible.
  clear() {
    this.stop()
    this.shown = this.failed = undefined
    this.loading = false
  }
}

// reaches drops what filters could not count from the period's beginning on: single clicks
// are kept for a while.
function reaches(a: Answer, window: Window): Answer | undefined {
  return a.filtered_from && Date.parse(a.filtered_from) > window.from.getTime() ? undefined : a
}

// missing is for a period before that is no longer kept: there is no comparison then.
function missing(e: unknown): undefined {
  if (aborted(e)) throw e
}

export interface Sums { clicks: number, people: number, bots: number, visitors: number | undefined }

// sums adds up a series. Visitors are those of its steps: who comes in two counts twice.
// They are not known for minutes, of which the API says 0.
export function sums(a: Answer, interval: Window['interval']): Sums {
  const s = { clicks: 0, people: 0, bots: 0, visitors: interval === 'minute' ? undefined : 0 as number | undefined }
  for (const p of a.series) {
    s.clicks += p.clicks
    s.people += p.humans
    s.bots += p.clicks - p.humans
    s.visitors = s.visitors === undefined || p.visitors === null ? undefined : s.visitors + p.visitors
  }
  return s
}
