// The queue of moderators. What is decided leaves it at once, and comes back when the
// server refuses; a decision can be undone by another one.
import { taken, type API, type Review } from '../api/client'
import { en } from '../text/en'
import type { SafetyName } from '../text/safety'
import { choice } from './choice'
import { Pages } from './pages.svelte'

export interface Filters { state: string, source: string, category: string, min_score: string, host: string, overdue: string, sort: string }

const page = 50
const most = 100 // decisions of a request

export const idOf = (r: Review): string => `${r.domain}/${r.case ?? r.short_code}/${r.opened_at}`

// Decided is what came of many decisions. undo gives the links the safety they had.
export interface Decided { done: number, refused: unknown[], undo: () => Promise<number> }

export class Reviews {
  readonly list: Pages<Review>
  chosen = $state.raw<ReadonlySet<string>>(new Set())
  changes = 0 // so many decisions were made: what was asked before is of before
  #api: API
  #filters: Filters = { state: '', source: '', category: '', min_score: '', host: '', overdue: '', sort: '' }

  constructor(api: API) {
    this.#api = api
    this.list = new Pages(async (cursor, signal) => {
      const { min_score, ...words } = this.#filters
      const asked = Object.fromEntries(Object.entries({ ...words, cursor }).filter(([, v]) => v !== ''))
      const score = /^\d{1,3}$/.test(min_score) && Number(min_score) <= 100 ? { min_score: Number(min_score) } : {}
      const got = await taken(this.#api.GET('/api/v1/reviews', { params: { query: { ...asked, ...score, limit: page } }, signal }))
      return { rows: got.reviews, next: got.next_cursor }
    })
  }

  ask(filters: Filters): Promise<void> {
    this.#filters = filters
    this.chosen = new Set()
    return this.list.ask()
  }

  refresh(): Promise<void> { return this.list.quietly(idOf, () => this.changes) }

  choose(ids: string[], on: boolean) { this.chosen = choice(this.chosen, ids, on) }

  // decideCase is a decision about a refused create, which has no link.
  async #decideCase(id: string, safety: SafetyName, reason: string): Promise<void> {
    await taken(this.#api.POST('/api/v1/cases/{case}/decision', { params: { path: { case: id } }, body: { safety, reason } }))
  }

  // decide says the same of many links. Rows leave the queue before the answer is there.
  async decide(rows: Review[], safety: SafetyName, reason: string): Promise<Decided> {
    const ids = new Set(rows.map(idOf))
    const waiting = this.#filters.state !== 'closed'
    const before = this.list.rows
    if (waiting) this.list.rows = before.filter(r => !ids.has(idOf(r)))
    this.choose([...ids], false)
    this.changes++
    const failed = new Set<string>()
    const refused: unknown[] = []
    for (const r of rows) {
      if (!r.case) continue
      try {
        await this.#decideCase(r.case, safety, reason)
      } catch (e) {
        refused.push(e)
        failed.add(idOf(r))
      }
    }
    const links = rows.filter(r => !r.case)
    for (let at = 0; at < links.length; at += most) {
      const some = links.slice(at, at + most)
      try {
        const got = await taken(this.#api.POST('/api/v1/reviews/decisions', { body: { decisions: some.map(r => ({ code: r.short_code, domain: r.domain, safety, reason })) } }))
        got.results.forEach((result, i) => {
          if (!result.problem) return
          refused.push(result.problem)
          failed.add(idOf(some[i]!))
        })
      } catch (e) {
        for (const r of some) failed.add(idOf(r))
        refused.push(...some.map(() => e))
      }
    }
    this.changes++
    if (waiting && failed.size > 0) this.list.rows = before.filter(r => failed.has(idOf(r)) || this.list.rows.includes(r))
    if (!waiting) void this.list.ask()
    const done = rows.filter(r => !failed.has(idOf(r)))
    return { done: done.length, refused, undo: () => this.#restore(done, en.safety.decide.undoReason(reason.slice(0, 250))) }
  }

  // restore decides anew what the links were before, and returns how many.
  async #restore(rows: Review[], reason: string): Promise<number> {
    const decisions = rows.flatMap(r => r.link ? [{ code: r.short_code, domain: r.domain, safety: r.link.safety, reason }] : [])
    let n = 0
    for (let at = 0; at < decisions.length; at += most) {
      const got = await taken(this.#api.POST('/api/v1/reviews/decisions', { body: { decisions: decisions.slice(at, at + most) } }))
      n += got.results.filter(r => !r.problem).length
    }
    this.changes++
    if (this.#filters.state === 'closed') void this.list.ask()
    return n
  }
}
