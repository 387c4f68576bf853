// The list of links: pages by cursor, and changes that show before they are answered.
import { aborted, taken, type API, type Link, type LinkChange } from '../api/client'
import { choice } from './choice'
import { stateOf } from './state'

export interface Question { q: string; tag: string; state: string; sort: string }

const page = 100

// changed is the link as a change will leave it, as far as a browser can know.
function changed(l: Link, change: LinkChange): Link {
  const next: Link = { ...l }
  if (change.status) next.status = change.status
  if (change.tags) next.tags = change.tags
  next.state = stateOf(next, Date.now())
  return next
}

export const idOf = (l: Link): string => l.id

export class Links {
  // rows is replaced, never changed in place.
  rows = $state.raw<Link[]>([])
  loading = $state(true)
  failed = $state.raw<unknown>()
  whole = $state(false) // the end of the list is there
  chosen = $state.raw<ReadonlySet<string>>(new Set()) // ids of rows
  #api: API
  #question: Question = { q: '', tag: '', state: '', sort: '' }
  #cursor = ''
  #going?: AbortController
  #changing = 0 // changes that are not answered yet

  constructor(api: API) { this.#api = api }

  // ask begins another list. What was shown stays until the answer is there.
  async ask(question: Question): Promise<void> {
    this.#question = question
    this.#cursor = ''
    this.chosen = new Set()
    await this.#load(true)
  }

  again(): Promise<void> { return this.#load(this.#cursor === '') }

  // more loads the next page, where there is one and none is on its way.
  async more(): Promise<void> {
    if (this.loading || this.whole || this.failed) return
    await this.#load(false)
  }

  async #load(fresh: boolean) {
    this.#going?.abort()
    const going = this.#going = new AbortController()
    this.loading = true
    this.failed = undefined
    const asked = Object.fromEntries(Object.entries({ ...this.#question, cursor: fresh ? '' : this.#cursor }).filter(([, v]) => v !== ''))
    try {
      const got = await taken(this.#api.GET('/api/v1/links', { params: { query: { ...asked, limit: page } }, signal: going.signal }))
      if (going.signal.aborted) return
      const known = new Set(fresh ? [] : this.rows.map(idOf))
      this.rows = fresh ? got.links : [...this.rows, ...got.links.filter(l => !known.has(l.id))]
      this.#cursor = got.next_cursor ?? ''
      this.whole = this.#cursor === ''
    } catch (e) {
      if (aborted(e) || going.signal.aborted) return
      if (fresh) this.rows = []
      this.failed = e
    }
    this.loading = false
  }

  // refresh asks for the first page again and shows what changed in it: clicks above all.
  // What is new is put on top where the newest is first. A failure changes nothing.
  async refresh(): Promise<void> {
    if (this.loading || this.failed || this.#changing > 0) return
    const question = this.#question
    const asked = Object.fromEntries(Object.entries(question).filter(([, v]) => v !== ''))
    const { data } = await this.#api.GET('/api/v1/links', { params: { query: { ...asked, limit: page } } }).catch(() => ({ data: undefined }))
    if (!data || question !== this.#question || this.loading || this.#changing > 0) return
    if (this.rows.length === 0) {
      this.rows = data.links
      this.#cursor = data.next_cursor ?? ''
      this.whole = this.#cursor === ''
      return
    }
    const now = new Map(data.links.map(l => [l.id, l]))
    const known = new Set(this.rows.map(idOf))
    const meets = data.links.findIndex(l => known.has(l.id)) // what lies behind was deleted, or is another page's
    const fresh = question.sort === '' && meets > 0 ? data.links.slice(0, meets) : []
    this.rows = [...fresh, ...this.rows.map(l => now.get(l.id) ?? l)]
  }

  // add puts a link that was just made on top: lists that are searched learn of it later.
  add(...made: Link[]) {
    const ids = new Set(made.map(idOf))
    this.rows = [...made, ...this.rows.filter(l => !ids.has(l.id))]
  }

  // choose adds rows to the choice, or takes them out.
  choose(ids: string[], on: boolean) { this.chosen = choice(this.chosen, ids, on) }

  put(l: Link) { this.rows = this.rows.map(r => r.id === l.id ? l : r) }

  // change shows a change at once, and takes it back when it is refused. Throws what the
  // API throws.
  async change(l: Link, change: LinkChange): Promise<Link> {
    const shown = changed(l, change)
    this.put(shown)
    this.#changing++
    try {
      const now = await taken(this.#api.PATCH('/api/v1/links/{code}', { params: { path: { code: l.short_code }, query: { domain: l.domain } }, body: change }))
      this.put(now)
      return now
    } catch (e) {
      this.rows = this.rows.map(r => r === shown ? l : r)
      throw e
    } finally {
      this.#changing--
    }
  }

  // remove deletes a link, and puts it back where it was when that is refused.
  async remove(l: Link): Promise<void> {
    const at = this.rows.findIndex(r => r.id === l.id)
    this.rows = this.rows.filter(r => r.id !== l.id)
    this.choose([l.id], false)
    this.#changing++
    try {
      await taken(this.#api.DELETE('/api/v1/links/{code}', { params: { path: { code: l.short_code }, query: { domain: l.domain } } }))
    } catch (e) {
      if (at >= 0 && !this.rows.some(r => r.id === l.id)) this.rows = this.rows.toSpliced(Math.min(at, this.rows.length), 0, l)
      throw e
    } finally {
      this.#changing--
    }
  }
}
