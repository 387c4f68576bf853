// The upload of a file, in chunks, each of which may be sent again.
import { aborted, Refused, taken, type API, type Job } from '../api/client'

const chunk = 1 << 20 // bytes: the most that the API takes at once

export class Upload {
  going = $state(false)
  error = $state.raw<unknown>()
  readonly id: string
  #api: API
  #file: File
  #at: number
  #put: (job: Job) => Job
  #cut?: AbortController

  constructor(api: API, job: Job, file: File, put: (job: Job) => Job) {
    this.#api = api
    this.id = job.id
    this.#at = job.uploaded
    this.#file = file
    this.#put = put
  }

  stop() { this.#cut?.abort() }

  // run sends what is missing. After a lost answer the server says where it continues.
  async run(): Promise<void> {
    const { signal } = this.#cut = new AbortController()
    this.going = true
    const fresh = this.error === undefined
    this.error = undefined
    try {
      for (let going = fresh || await this.#behind(); going && !signal.aborted;) {
        try {
          going = await this.#send(signal)
        } catch (e) {
          const before = this.#at
          if (!(e instanceof Refused) || e.status !== 409) throw e
          going = await this.#behind() // another page has sent it, or ended the job
          if (going && this.#at === before) throw e
        }
      }
    } catch (e) {
      if (!aborted(e) && !signal.aborted) this.error = e
    }
    this.going = false
  }

  async #send(signal: AbortSignal): Promise<boolean> {
    const end = Math.min(this.#at + chunk, this.#file.size)
    const bytes = await this.#file.slice(this.#at, end).arrayBuffer()
    const job = this.#put(await taken(this.#api.PUT('/api/v1/jobs/{id}/input', {
      params: { path: { id: this.id }, query: { offset: this.#at, ...(end === this.#file.size && { complete: true }) } },
      headers: { 'Content-Type': 'application/octet-stream' }, body: '', bodySerializer: () => bytes, signal
    })))
    this.#at = job.uploaded
    return job.state === 'uploading'
  }

  // behind asks where the upload continues, and whether it does.
  async #behind(): Promise<boolean> {
    const job = this.#put(await taken(this.#api.GET('/api/v1/jobs/{id}', { params: { path: { id: this.id } } })))
    this.#at = job.uploaded
    return job.state === 'uploading'
  }
}
