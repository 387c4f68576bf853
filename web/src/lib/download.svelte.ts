// A download of what a job has left. The pieces are the browser's to keep, on its disk when
// they are many; one that stopped continues where it was.
import { taken, type API, type Job } from '../api/client'
import { save, stamped } from './save'

export interface Part { format?: 'csv', failed?: true } // of the rows of an import

const piece = 4 << 20 // bytes: many small pieces cost more than they hold

export class Download {
  state = $state<'ready' | 'running' | 'stopped'>('ready')
  bytes = $state(0)
  error = $state.raw<unknown>()
  #api: API
  #job: Job
  #part: Part
  #pieces: Blob[] = []
  #cut?: AbortController

  constructor(api: API, job: Job, part: Part) {
    this.#api = api
    this.#job = job
    this.#part = part
  }

  stop() { this.#cut?.abort() }

  async run(): Promise<void> {
    const { signal } = this.#cut = new AbortController()
    this.state = 'running'
    this.error = undefined
    try {
      await this.#read(signal)
      this.#save()
      this.state = 'ready'
    } catch (e) {
      if (!signal.aborted) this.error = e
      this.state = 'stopped'
    }
  }

  async #read(signal: AbortSignal) {
    const { id, result } = this.#job
    const whole = !this.#part.format && !this.#part.failed // which the server can send from an offset on
    if (!whole) this.#forget()
    if (whole && this.bytes > 0 && this.bytes === result?.bytes) return
    const body = await taken(this.#api.GET('/api/v1/jobs/{id}/result', {
      params: { path: { id }, query: this.#part }, parseAs: 'stream', signal, ...(this.bytes > 0 && { headers: { Range: `bytes=${this.bytes}-` } })
    })) as unknown as ReadableStream<Uint8Array<ArrayBuffer>> | null
    const reader = body?.getReader()
    let held: Uint8Array<ArrayBuffer>[] = [], size = 0
    const fold = () => {
      if (size > 0) this.#pieces.push(new Blob(held))
      held = []
      size = 0
    }
    try {
      for (let next = await reader?.read(); next && !next.done; next = await reader!.read()) {
        held.push(next.value)
        size += next.value.length
        this.bytes += next.value.length
        if (size >= piece) fold()
      }
    } finally {
      fold() // what came before a stop counts
    }
  }

  #save() {
    const { kind, result } = this.#job
    const csv = this.#part.format === 'csv' || !!result?.content_type.startsWith('text/csv')
    const name = kind === 'export' ? 'links' : this.#part.failed ? 'refused' : 'import'
    save(new Blob(this.#pieces, { type: csv ? 'text/csv' : 'application/x-ndjson' }), stamped(name, csv ? 'csv' : 'jsonl'))
    this.#forget()
  }

  #forget() {
    this.#pieces = []
    this.bytes = 0
  }
}

export interface Refusal { line: number, short_code?: string, error: string }

// refusals reads the first rows that failed, and no more.
export async function refusals(api: API, job: Job, most: number, signal: AbortSignal): Promise<Refusal[]> {
  const body = await taken(api.GET('/api/v1/jobs/{id}/result', { params: { path: { id: job.id }, query: { failed: true } }, parseAs: 'stream', signal })) as unknown as ReadableStream<Uint8Array<ArrayBuffer>> | null
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const rows: Refusal[] = []
  for (let next = await reader?.read(); next && !next.done && rows.length < most; next = await reader!.read()) {
    const lines = (text + next.value).split('\n')
    text = lines.pop()!
    for (const line of lines) rows.push(JSON.parse(line) as Refusal)
  }
  await reader?.cancel()
  return rows.slice(0, most)
}
