// A list that comes in pages by cursor, and may be changed before the server has answered.
import { aborted } from '../api/client'

export interface Page<T> { rows: T[], next?: string | undefined }

export class Pages<T> {
  // rows is replaced, never changed in place.
  rows = $state.raw<T[]>([])
  loading = $state(true)
  failed = $state.raw<unknown>()
  whole = $state(false) // the end of the list is there
  #load: (cursor: string, signal: AbortSignal) => Promise<Page<T>>
  #cursor = ''
  #going?: AbortController

  constructor(load: (cursor: string, signal: AbortSignal) => Promise<Page<T>>) { this.#load = load }

  // ask begins the list anew. What was shown stays until the answer is there.
  async ask(): Promise<void> {
    this.#cursor = ''
    await this.#next(true)
  }

  again = (): Promise<void> => this.#next(this.#cursor === '')

  async more(): Promise<void> {
    if (!this.loading && !this.whole) await this.#next(false)
  }

  // quietly asks for the first page again and shows what changed in it; a failure changes
  // nothing, nor does it while changed says that the answer is of before.
  async quietly(id: (row: T) => unknown, changed: () => number): Promise<void> {
    if (this.loading || this.failed) return
    const before = changed()
    const got = await this.#load('', new AbortController().signal).catch(() => undefined)
    if (!got || this.loading || changed() !== before) return
    const more = this.rows.slice(got.rows.length)
    const known = new Set(got.rows.map(id))
    if (this.#cursor === '' || this.rows.length <= got.rows.length) {
      this.rows = got.rows
      this.#cursor = got.next ?? ''
      this.whole = this.#cursor === ''
    } else this.rows = [...got.rows, ...more.filter(r => !known.has(id(r)))]
  }

  async #next(fresh: boolean) {
    this.#going?.abort()
    const going = this.#going = new AbortController()
    this.loading = true
    this.failed = undefined
    try {
      const got = await this.#load(fresh ? '' : this.#cursor, going.signal)
      if (going.signal.aborted) return
      this.rows = fresh ? got.rows : [...this.rows, ...got.rows]
      this.#cursor = got.next ?? ''
      this.whole = this.#cursor === ''
    } catch (e) {
      if (aborted(e) || going.signal.aborted) return
      if (fresh) this.rows = []
      this.failed = e
    }
    this.loading = false
  }

  // without takes rows out until undo puts them back where they were.
  without(gone: (row: T) => boolean): { undo: () => void } {
    const before = this.rows
    this.rows = before.filter(r => !gone(r))
    return { undo: () => { this.rows = [...before.filter(r => gone(r) || this.rows.includes(r)), ...this.rows.filter(r => !before.includes(r))] } }
  }
}
