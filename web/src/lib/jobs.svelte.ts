// Imports and exports as jobs of the server: the list of them, the one that is open, and the
// file that is uploaded. A job outlives the page; an upload continues with the same file.
import { aborted, Refused, taken, type API, type Job, type JobOptions } from '../api/client'
import { Pages } from './pages.svelte'
import { Upload } from './upload.svelte'

export const ended = (j: Job): boolean => j.state === 'done' || j.state === 'failed' || j.state === 'canceled'

const every = 1000 // milliseconds between two looks at a job that goes on
const listEvery = 10 // of these between two looks at the list, for jobs of other pages
const pageSize = 50
const followed = 8 // jobs at once: a workspace has five at most, an admin sees all workspaces

// nameOf is what a file is called, within the bounds of the API.
const nameOf = (file: File): string => file.name.slice(0, 80).toWellFormed().replace(/\p{Cc}/gu, ' ')

export class Jobs {
  readonly list: Pages<Job>
  job = $state.raw<Job>() // that is open
  lost = $state.raw<unknown>() // why it cannot be shown
  upload = $state.raw<Upload>()
  checking = $state(false) // a dry run is being started anew
  opened = $state(0) // so many jobs were opened; a dry run that is repeated counts as one
  created = $state('') // the export that this page has asked for
  #api: API
  #opened = ''
  #changes = 0
  #wanted?: JobOptions

  constructor(api: API) {
    this.#api = api
    this.list = new Pages(async (cursor, signal) => {
      const got = await taken(api.GET('/api/v1/jobs', { params: { query: { limit: pageSize, ...(cursor && { cursor }) } }, signal }))
      return { rows: got.jobs, next: got.next_cursor }
    })
  }

  // run follows the jobs until what it returns is called, which stops an upload, too.
  run(): () => void {
    let looks = 0, looking = false
    void this.list.ask()
    const timer = setInterval(() => {
      if (looking || document.hidden) return
      looking = true
      void this.#look(++looks % listEvery === 0).finally(() => { looking = false })
    }, every)
    return () => {
      clearInterval(timer)
      this.upload?.stop()
    }
  }

  async #look(all: boolean): Promise<void> {
    if (all) await this.list.quietly(j => j.id, () => this.#changes)
    const going = new Map([this.job, ...this.list.rows].filter(j => j && !ended(j)).map(j => [j!.id, j!]))
    if (this.upload?.going) going.delete(this.upload.id)
    await Promise.all([...going.keys()].slice(0, followed).map(id => this.#get(id).catch((e: unknown) => {
      if (e instanceof Refused && e.status === 404) this.#drop(id, e)
    })))
  }

  async #get(id: string): Promise<Job> { return this.put(await taken(this.#api.GET('/api/v1/jobs/{id}', { params: { path: { id } } }))) }

  // put shows a job as it is now.
  put = (job: Job): Job => {
    this.#changes++
    if (job.id === this.#opened) this.job = job
    this.list.rows = this.list.rows.some(j => j.id === job.id) ? this.list.rows.map(j => j.id === job.id ? job : j) : [job, ...this.list.rows]
    return job
  }

  #drop(id: string, why: unknown) {
    this.#changes++
    if (id === this.#opened) {
      this.job = undefined
      this.lost = why
    }
    this.list.without(j => j.id === id)
  }

  // open shows the job of an address; '' = none.
  async open(id: string): Promise<void> {
    if (id === this.#opened) return
    this.#opened = id
    this.opened++
    this.lost = undefined
    this.job = this.list.rows.find(j => j.id === id)
    if (this.upload?.id !== id) this.upload?.stop()
    if (id === '' || this.job) return
    try {
      const job = await taken(this.#api.GET('/api/v1/jobs/{id}', { params: { path: { id } } }))
      if (this.#opened === id) this.job = job
    } catch (e) {
      if (this.#opened === id && !aborted(e)) this.lost = e
    }
  }

  async #create(body: { kind: Job['kind'], size?: number, input?: string, options: JobOptions }): Promise<Job> {
    const job = await taken(this.#api.POST('/api/v1/jobs', { body }))
    this.upload?.stop()
    this.upload = undefined
    this.#opened = job.id
    return this.put(job)
  }

  // check creates the dry run of a file, which is uploaded for it.
  async check(file: File): Promise<Job> {
    const job = await this.#create({ kind: 'import', size: file.size, options: { name: nameOf(file), dry_run: true } })
    this.opened++
    this.resume(job, file)
    return job
  }

  // resume uploads what is missing of a file.
  resume(job: Job, file: File) {
    this.upload?.stop()
    this.upload = new Upload(this.#api, job, file, this.put)
    void this.upload.run()
  }

  // recheck repeats a dry run with other options. The last ones count; next is called with each job.
  async recheck(options: JobOptions, next: (job: Job) => void): Promise<void> {
    this.#wanted = options
    if (this.checking) return
    this.checking = true
    try {
      while (this.#wanted) {
        const before = await this.#end(this.job!)
        const wanted = this.#wanted
        this.#wanted = undefined
        next(await this.#create({ kind: 'import', input: before.id, options: wanted }))
        await this.remove(before)
      }
    } finally {
      this.checking = false
      this.#wanted = undefined
    }
  }

  // follow creates the import behind a dry run, or continues one that was canceled or failed.
  async follow(job: Job): Promise<Job> {
    const { dry_run, offset = 0, ...options } = job.options
    const next = await this.#create({ kind: 'import', input: job.id, options: dry_run ? options : { ...options, offset: Math.max(offset, job.progress.bytes) } })
    this.opened++
    if (dry_run) await this.remove(job)
    return next
  }

  async export(options: JobOptions): Promise<Job> {
    const job = await this.#create({ kind: 'export', options })
    this.created = job.id
    return job
  }

  // #end cancels a job and returns it once it has ended.
  async #end(job: Job): Promise<Job> {
    if (ended(job)) return job
    for (let now = await this.cancel(job); ; now = await this.#get(job.id)) {
      if (ended(now)) return now
      await new Promise(resolve => setTimeout(resolve, every / 5))
    }
  }

  async cancel(job: Job): Promise<Job> {
    if (this.upload?.id === job.id) this.upload.stop()
    return this.put(await taken(this.#api.POST('/api/v1/jobs/{id}/cancel', { params: { path: { id: job.id } } })))
  }

  // remove deletes a job that has ended. Its row goes at once, and comes back when the server says no.
  async remove(job: Job): Promise<void> {
    this.#changes++
    const gone = this.list.without(j => j.id === job.id)
    try {
      await taken(this.#api.DELETE('/api/v1/jobs/{id}', { params: { path: { id: job.id } } }))
    } catch (e) {
      if (e instanceof Refused && e.status === 404) return
      gone.undo()
      throw e
    }
  }
}
