// An import: a file is looked through, then its links are made, a batch at a time. It can
// be stopped between two batches and goes on where it was: a batch whose answer was lost
// is sent again under its key, which makes nothing twice.
import { Refused, taken, type API, type BulkResult } from '../api/client'
import { csvRow } from './csv'
import { rows, type Row, type Understood } from './importfile'

export interface Failure { line: number, url: string, why: string }
export type Stage = 'ready' | 'checking' | 'checked' | 'sending' | 'waiting' | 'stopping' | 'stopped' | 'done'

// Limits of a batch: the API's, and what of a body of 16 MiB is well below it.
const mostRows = 1000
const mostText = 4 << 20
// kept is how many failures the page shows; the file has all of them.
const kept = 200

export interface Plan { file: File, how: Understood, domain: string, tags: string[], most: number, fault: (r: Row) => string }

interface Batch { rows: Row[], body: string, key: string }

export class Importer {
  stage = $state<Stage>('ready')
  read = $state(0) // bytes of the file
  good = $state(0) // rows that can be sent
  made = $state(0)
  skipped = $state(0)
  failed = $state(0)
  failures = $state.raw<Failure[]>([])
  error = $state.raw<unknown>()
  until = $state(0) // the server lets nothing pass before
  seconds = $state(0) // spent sending
  readonly plan: Plan
  #api: API
  #over = false // nobody looks any more
  #rows?: AsyncGenerator<Row>
  #batch?: Batch // that is not answered
  #last = new Blob() // of failures, as CSV
  #results: Blob[] = []
  #seed = crypto.getRandomValues(new Uint32Array(4)).join('-')
  #wake?: () => void

  constructor(api: API, plan: Plan) {
    this.#api = api
    this.plan = plan
  }

  // check looks through the file and sends nothing. It returns early when a newer check
  // has taken its place.
  async check(): Promise<void> {
    this.stage = 'checking'
    let good = 0, skipped = 0, failed = 0, seen = performance.now()
    const failures: Failure[] = []
    const parts: string[] = []
    for await (const r of this.#judged()) {
      if (this.#over) return
      if (r.skipped) skipped++
      else if (r.wanted) good++
      else {
        failed++
        const f = { line: r.line, url: r.text.slice(0, 300), why: this.plan.fault(r) }
        if (failures.length < kept) failures.push(f)
        parts.push(csvRow([String(f.line), f.why, f.url]))
      }
      if (performance.now() - seen > 50) {
        this.read = r.bytes
        this.good = good
        this.failed = failed
        await new Promise(r => setTimeout(r)) // let the page be used
        seen = performance.now()
      }
    }
    Object.assign(this, { good, skipped, failed, failures, read: this.plan.file.size })
    this.#last = new Blob(parts)
    this.stage = 'checked'
  }

  // send makes the links, from the first or from where it was stopped.
  async send(): Promise<void> {
    if (!this.#rows) {
      Object.assign(this, { made: 0, skipped: 0, failed: 0, failures: [], read: 0 })
      this.#last = new Blob()
      this.#rows = this.#judged()
    }
    this.stage = 'sending'
    this.error = undefined
    try {
      for (;;) {
        this.#batch ??= await this.#next()
        if (!this.#batch) {
          this.stage = 'done'
          return
        }
        if (this.#stops()) return
        const began = performance.now()
        const results = await this.#post(this.#batch)
        if (!results) return // stopped while it waited
        await this.#settle(this.#batch.rows, results)
        this.seconds += (performance.now() - began) / 1000
        this.#batch = undefined
      }
    } catch (e) {
      this.error = e
      this.stage = 'stopped'
    }
  }

  stop() {
    if (this.stage !== 'sending' && this.stage !== 'waiting') return
    this.stage = 'stopping'
    this.#wake?.()
  }

  leave() {
    this.#over = true
    this.stop()
  }

  // failuresFile has every row that failed, resultsFile what became of every row.
  failuresFile(): Blob { return new Blob([csvRow(['line', 'error', 'row']), this.#last], { type: 'text/csv' }) }
  resultsFile(): Blob { return new Blob([csvRow(['line', 'short_url', 'long_url', 'error']), ...this.#results], { type: 'text/csv' }) }

  // judged reads the rows. A code that stands in a line before, too, makes a row wrong: what
  // was looked through and what is sent are the same.
  async * #judged(): AsyncGenerator<Row> {
    const codes = new Map<string, number>()
    for await (const r of rows(this.plan.file, this.plan.how, this.plan.domain, this.plan.tags)) {
      const code = r.wanted?.link.custom_alias
      const place = `${r.wanted?.link.domain ?? ''}/${code}`
      const before = code ? codes.get(place) : undefined
      if (code && before === undefined) codes.set(place, r.line)
      if (before === undefined) yield r
      else yield { line: r.line, bytes: r.bytes, text: r.text, wrong: 'code', value: `${code} = ${before}` }
    }
  }

  #stops(): boolean {
    if (this.stage === 'stopping' || this.#over) {
      this.stage = 'stopped'
      return true
    }
    return false
  }

  async #next(): Promise<Batch | undefined> {
    const batch: Row[] = []
    const links: string[] = []
    let text = 0
    while (links.length < Math.min(mostRows, this.plan.most) && text < mostText) {
      const { done, value } = await this.#rows!.next()
      if (done) break
      batch.push(value)
      if (value.wanted) {
        links.push(JSON.stringify(value.wanted.link))
        text += links.at(-1)!.length
      }
    }
    if (batch.length === 0) return undefined
    const body = links.length > 0 ? `{"links":[${links.join(',')}]}` : ''
    return { rows: batch, body, key: await this.#key(body, batch[0]!.line) }
  }

  // key names a batch by what is in it, so that the same file, chosen again on the same
  // day, makes nothing twice. Pages over plain HTTP have no digests: there only this
  // import can go on.
  async #key(body: string, line: number): Promise<string> {
    if (!globalThis.isSecureContext) return `import-${this.#seed}-${line}`
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body)))
    return 'import-' + Array.from(digest, b => b.toString(16).padStart(2, '0')).join('')
  }

  // post sends a batch until it is answered. undefined: it was stopped before.
  async #post(b: Batch): Promise<BulkResult[] | undefined> {
    if (b.body === '') return []
    for (;;) {
      const { data, error, response } = await this.#api.POST('/api/v1/links/bulk', {
        params: { header: { 'Idempotency-Key': b.key } }, body: { links: [] }, bodySerializer: () => b.body // is text already
      })
      if (data) return data.results
      if (response.status !== 429) return (await taken(Promise.resolve({ data, error, response }))) as never
      const wait = Math.max(1, Number(response.headers.get('Retry-After')) || 60)
      this.until = Date.now() + wait * 1000
      if (this.stage === 'sending') this.stage = 'waiting'
      await new Promise<void>(r => {
        const timer = setTimeout(r, wait * 1000)
        this.#wake = () => { clearTimeout(timer); r() }
      })
      if (this.#stops()) return undefined
      this.stage = 'sending'
    }
  }

  // settle keeps what became of each row. What can fail comes first: a batch that is sent
  // again is counted once.
  async #settle(batch: Row[], results: BulkResult[]) {
    const server = results.find(r => r.problem && r.problem.status >= 500)
    if (server) throw new Refused(server.problem!) // not the row's fault: the batch is sent again
    const wanted = batch.filter(r => r.wanted)
    for (const [i, r] of wanted.entries()) {
      const link = results[i]?.link
      if (r.wanted!.off && link?.status === 'active') await this.#off(link.short_code, link.domain)
    }
    const lines: string[] = [], wrong: string[] = [], failures: Failure[] = []
    let at = 0
    for (const r of batch) {
      const result = r.wanted ? results[at++] : undefined
      if (r.skipped) this.skipped++
      else if (result?.link) {
        this.made++
        lines.push(csvRow([String(r.line), result.link.short_url, result.link.long_url, '']))
      } else {
        this.failed++
        const why = r.wanted ? result?.problem?.detail ?? result?.problem?.title ?? '' : this.plan.fault(r)
        const url = r.wanted?.link.long_url ?? r.text.slice(0, 300)
        if (this.failures.length + failures.length < kept) failures.push({ line: r.line, url: r.text.slice(0, 300), why })
        wrong.push(csvRow([String(r.line), why, r.text.slice(0, 16 << 10)]))
        lines.push(csvRow([String(r.line), '', url, why]))
      }
    }
    this.read = batch.at(-1)!.bytes
    this.failures = [...this.failures, ...failures]
    this.#last = new Blob([this.#last, ...wrong])
    this.#results.push(new Blob(lines))
  }

  async #off(code: string, domain: string) {
    await taken(this.#api.PATCH('/api/v1/links/{code}', { params: { path: { code }, query: { domain } }, body: { status: 'disabled' } }))
  }
}
