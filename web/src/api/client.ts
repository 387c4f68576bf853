// The one way to the server: openapi-fetch over the types of api/openapi.yaml. Whatever
// goes wrong becomes one of two errors, so that a screen need not know of HTTP.
import createClient, { type Client, type Middleware } from 'openapi-fetch'
import type { components, paths } from './schema'

export type Link = components['schemas']['Link']
export type LinkCreate = components['schemas']['LinkCreate']
export type LinkChange = components['schemas']['LinkChange']
export type BulkResult = components['schemas']['BulkResult']
export type Self = components['schemas']['Caller']
export type Key = components['schemas']['Key']
export type NewKey = components['schemas']['KeyWithSecret']
export type KeyCreate = components['schemas']['KeyCreate']
export type Job = components['schemas']['Job']
export type JobOptions = components['schemas']['JobOptions']
export type Review = components['schemas']['Review']
export type Case = components['schemas']['Case']
export type ReviewFile = components['schemas']['ReviewFile']
export type JournalEntry = components['schemas']['JournalEntry']
export type Ban = components['schemas']['Ban']
export type BanPreview = components['schemas']['BanPreview']
export type ListName = components['schemas']['ModeratedList']
export type ListEntry = components['schemas']['ListEntry']
export type BuiltinEntry = components['schemas']['BuiltinEntry']
export type Health = components['schemas']['Health']
export type Problem = components['schemas']['Problem']
export type State = Link['state']
export type Answer = Omit<components['schemas']['Stats'], 'short_code'>
export type Orphans = components['schemas']['OrphanStats']
export type Point = components['schemas']['StatsPoint']
export type Value = components['schemas']['StatsValue']
export type Click = components['schemas']['Click']
export type ClickList = components['schemas']['ClickList']

// Refused is an answer that is none of success.
export class Refused extends Error {
  readonly problem: Problem
  readonly wait: number // seconds until it may be asked again; 0 = the server did not say
  constructor(problem: Problem, wait = 0) {
    super(problem.detail ?? problem.title)
    this.problem = problem
    this.wait = wait
  }
  get status(): number { return this.problem.status }
  get field(): string | undefined { return this.problem.field }
}

// Unreachable means that no answer came.
export class Unreachable extends Error {}

export type API = Client<paths>

// connect returns a client that shows the key; ended is told when it is one no more.
export function connect(key: string, ended: () => void): API {
  const api = createClient<paths>({ baseUrl: location.origin, credentials: 'omit', cache: 'no-store', redirect: 'error' })
  const show: Middleware = {
    onRequest({ request }) {
      request.headers.set('Authorization', `Bearer ${key}`)
    },
    onResponse({ response }) {
      if (response.status === 401) ended()
    },
    onError({ error }) {
      if (error instanceof DOMException && error.name === 'AbortError') return error
      return new Unreachable('no answer', { cause: error })
    }
  }
  api.use(show)
  return api
}

interface Got<T> { data?: T; error?: unknown; response: Response }

// taken returns what an answer holds, or throws Refused.
export async function taken<T>(asked: Promise<Got<T>>): Promise<T> {
  const { data, error, response } = await asked
  if (response.ok) return data as T
  throw new Refused(isProblem(error) ? error : { type: 'about:blank', title: response.statusText || `HTTP ${response.status}`, status: response.status }, waitOf(response))
}

// waitOf reads Retry-After, which this server writes in seconds.
function waitOf(response: Response): number {
  const seconds = Number(response.headers.get('Retry-After'))
  return seconds > 0 && seconds < 86400 ? Math.ceil(seconds) : 0
}

function isProblem(e: unknown): e is Problem {
  return typeof e === 'object' && e !== null && 'title' in e && 'status' in e
}

export function aborted(e: unknown): boolean {
  return e instanceof DOMException && e.name === 'AbortError'
}
