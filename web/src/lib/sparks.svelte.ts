// The days of the links in sight, asked for many at once and kept for a while.
import { Refused, taken, type API, type Link } from '../api/client'
import { idOf } from './links.svelte'

const most = 100 // of one question
const pause = 120 // milliseconds in which a list that is scrolled gathers rows
const keeps = 60_000 // milliseconds until a link is asked for again

const nameOf = (l: Link): string => `${l.domain}/${l.short_code}`

export class Sparks {
  days = $state.raw<ReadonlyMap<string, number[]>>(new Map()) // by id
  #api: API
  #asked = new Map<string, number>() // when, by id
  #timer: ReturnType<typeof setTimeout> | undefined
  #refused = false // the key may not read statistics

  constructor(api: API) { this.#api = api }

  // want asks for links whose days are not known yet, or no longer.
  want(links: Link[]) {
    clearTimeout(this.#timer)
    if (!this.#refused) this.#timer = setTimeout(() => void this.#load(links), pause)
  }

  stop() { clearTimeout(this.#timer) }

  async #load(links: Link[]) {
    const now = Date.now()
    const asked = links.filter(l => now - (this.#asked.get(idOf(l)) ?? 0) > keeps).slice(0, most)
    if (asked.length === 0) return
    for (const l of asked) this.#asked.set(idOf(l), now)
    const ids = new Map(asked.map(l => [nameOf(l), idOf(l)]))
    try {
      const got = await taken(this.#api.GET('/api/v1/stats/links', { params: { query: { links: asked.map(nameOf).join() } } }))
      const next = new Map(this.days)
      for (const s of got.series) {
        const id = ids.get(`${s.domain}/${s.short_code}`)
        if (id) next.set(id, s.clicks)
      }
      this.days = next
    } catch (e) {
      this.#refused = e instanceof Refused && e.status === 403 // else these are asked for later: pictures are no news
    }
  }
}
