// What went wrong, in words for people.
import { Refused, Unreachable } from '../api/client'
import { span } from './format'
import { en } from '../text/en'

export function explain(e: unknown): string {
  if (e instanceof Unreachable) return navigator.onLine ? en.failure.unreachable : en.failure.offline
  if (!(e instanceof Refused)) return en.failure.server()
  if (e.status === 403) return en.failure.scope
  if (e.status === 404) return en.failure.gone
  if (e.status === 429) return en.failure.limited(e.wait > 0 ? span(e.wait) : '')
  if (e.status >= 500) return en.failure.server(e.problem.request_id)
  return sentence(e.message)
}

// sentence writes what the API says as a sentence.
// Fields are called as the forms call them.
export function sentence(text: string): string {
  const [, path, rest] = /^([a-z][\w.[\]]*): (.*)$/s.exec(text) ?? []
  const name = (en.fieldNames as Record<string, string | undefined>)[path?.split('.').at(-1) ?? '']
  return name ? `${name}: ${ended(rest!)}` : ended(text.charAt(0).toUpperCase() + text.slice(1))
}

function ended(text: string): string {
  return text + (/[.!?]$/.test(text) ? '' : '.')
}
