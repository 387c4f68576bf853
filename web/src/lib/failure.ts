// What went wrong, in words for people.
import { Refused, Unreachable } from '../api/client'
import { en } from '../text/en'

export function explain(e: unknown): string {
  if (e instanceof Unreachable) return navigator.onLine ? en.failure.unreachable : en.failure.offline
  if (!(e instanceof Refused)) return en.failure.server()
  if (e.status === 403) return en.failure.scope
  if (e.status === 404) return en.failure.gone
  if (e.status >= 500) return en.failure.server(e.problem.request_id)
  return sentence(e.message)
}

// sentence writes what the API says as a sentence.
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.')
}
