// The list of links: pages by cursor, and changes that show before they are answered.
import { aborted, Refused, taken, type API, type Link, type LinkChange } from '../api/client'
import { begin, take } from './begun'
import { choice } from './choice'
import { editOf, keep } from './drafts'
import { stateOf } from './state'

export interface Question { q: string; tag: string; state: string; sort: string }

const page = 100

// listed asks for a page of the list.
async function listed(api: API, question: Question, cursor: string, signal?: AbortSignal) {
  const asked = Object.fromEntries(Object.entries({ ...question, cursor }).filter(([, v]) => v !== ''))
  return taken(api.GET('/api/v1/links', { params: { query: { ...asked, limit: page } }, ...(signal ? { signal } : {}) }))
}

const named = (question: Question): string => 'links ' + JSON.stringify(question)

// ask begins the first page of a list that will be shown.
export function ask(api: API, question: Question): void { begin(api, named(question), () => listed(api, question, '')) }

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
  asking = $state(true) // for another list, while that of before is shown
  failed = $state.raw<unknown>()
  whole = $state(false) // the end of the list is there
  stale = $state(false) // the server was asked again and did not answer
  chosen = $state.raw<ReadonlySet<string>>(new Set()) // ids of rows
  #api: API
  #question: Question = { q: '', tag: '', state: '', sort: '' }
  #cursor = ''
  #going?: AbortController
  #changing = 0 // changes that are not answered yet
  #changes = 0 // those that were
  #notBefore = 0 // the server asks to be left alone until then

  constructor(api: API) { this.#api = api }

  // ask begins another list. What was shown stays until the answer is there.
  async ask(question: Question): Promise<void> {
    this.#question = question
    this.#cursor = ''
    this.chosen = new Set()
    await this.#load(true)
  }

  // unlisted is for a key that may not list: what is made here is all there is.
  unlisted() {
    this.loading = this.asking = false
    this.whole = true
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
    this.asking = fresh
    this.failed = undefined
    this.stale = false
    const question = this.#question
    try {
      const got = await (fresh ? take(this.#api, named(question), () => listed(this.#api, question, '', going.signal)) : listed(this.#api, question, this.#cursor, going.signal))
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
    this.loading = this.asking = false
  }

  // refresh asks for the first page again and shows what changed in it: clicks above all.
  // What is new is put on top where the newest is first, and what was deleted elsewhere is
  // taken out where the answer is no index's, which may lag. A failure changes nothing; a
  // server that is asked too often is left alone for as long as it says.
  async refresh(): Promise<void> {
    if (this.loading || this.failed || this.#changing > 0 || Date.now() < this.#notBefore) return
    const question = this.#question
    const before = this.rows
    const changes = this.#changes
    const data = await listed(this.#api, question, '').catch((e: unknown) => {
      if (e instanceof Refused) this.#notBefore = Date.now() + 1000 * e.wait
    })
    this.stale = !data
    if (!data || question !== this.#question || this.loading || this.#changing > 0 || this.#changes !== changes) return
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
    const exact = question.q + question.tag + question.state === '' && question.sort !== '-clicks'
    const last = data.links.findLast(l => known.has(l.id)) // what lies behind it is another page's
    const end = data.next_cursor ? before.findIndex(l => l.id === last?.id) : before.length
    const gone = new Set(exact ? before.slice(0, Math.max(0, end)).map(idOf).filter(id => !now.has(id)) : [])
    if ([...gone].some(id => this.chosen.has(id))) this.choose([...gone], false)
    this.rows = [...fresh, ...this.rows.filter(l => !gone.has(l.id)).map(l => now.get(l.id) ?? l)]
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
      this.#changes++
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
      keep(this.#api, editOf(l.id), undefined)
    } catch (e) {
      if (at >= 0 && !this.rows.some(r => r.id === l.id)) this.rows = this.rows.toSpliced(Math.min(at, this.rows.length), 0, l)
      throw e
    } finally {
      this.#changing--
      this.#changes++
    }
  }
}
