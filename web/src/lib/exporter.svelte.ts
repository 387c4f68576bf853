// An export: the list, page by page, into a file. The pieces are the browser's to keep,
// on its disk when they are many, so that no list is too long.
import { taken, type API } from '../api/client'
import { csvRow } from './csv'
import { cellsOfLink, columns, recordOf } from './record'

export interface Wish { format: 'csv' | 'jsonl', q: string, tag: string, state: string, domain: string }

const page = 100 // of the API
const together = 20 // pages of a piece: many small ones cost more than they hold

export class Exporter {
  stage = $state<'ready' | 'running' | 'stopped' | 'done'>('ready')
  count = $state(0)
  bytes = $state(0)
  seconds = $state(0)
  error = $state.raw<unknown>()
  #api: API
  #home: string
  #wish: Wish
  #pieces: Blob[] = []
  #text: string[] = []
  #cursor = ''
  #going?: AbortController

  constructor(api: API, wish: Wish, home: string) {
    this.#api = api
    this.#wish = wish
    this.#home = home
    if (wish.format === 'csv') this.#add(csvRow([...columns]))
  }

  // run reads the list, from its beginning or from where it was stopped.
  async run(): Promise<void> {
    this.stage = 'running'
    this.error = undefined
    const going = this.#going = new AbortController()
    const { format, ...filters } = this.#wish
    const asked = Object.fromEntries(Object.entries(filters).filter(([, v]) => v !== ''))
    const began = performance.now(), before = this.seconds
    try {
      do {
        const query = this.#cursor ? { ...asked, limit: page, cursor: this.#cursor } : { ...asked, limit: page }
        const got = await taken(this.#api.GET('/api/v1/links', { params: { query }, signal: going.signal }))
        if (going.signal.aborted) break
        this.#add(got.links.map(l => format === 'csv' ? csvRow(cellsOfLink(l, this.#home)) : JSON.stringify(recordOf(l, this.#home)) + '\n').join(''))
        this.count += got.links.length
        this.#cursor = got.next_cursor ?? ''
        this.seconds = before + (performance.now() - began) / 1000
      } while (this.#cursor !== '')
    } catch (e) {
      if (!going.signal.aborted) this.error = e
    }
    this.stage = this.error || going.signal.aborted ? 'stopped' : 'done'
  }

  stop() { this.#going?.abort() }

  file(): Blob {
    this.#fold()
    return new Blob(this.#pieces, { type: this.#wish.format === 'csv' ? 'text/csv' : 'application/x-ndjson' })
  }

  #add(text: string) {
    this.bytes += new TextEncoder().encode(text).length
    if (this.#text.push(text) >= together) this.#fold()
  }

  #fold() {
    if (this.#text.length > 0) this.#pieces.push(new Blob(this.#text))
    this.#text = []
  }
}
