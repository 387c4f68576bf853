// What a screen asks first is asked while the key is still being checked, and waits here
// until the screen is there.
import type { API } from '../api/client'

const waiting = new WeakMap<API, Map<string, Promise<unknown>>>()

// begin asks ahead. A failure is told to whoever takes the answer.
export function begin<T>(api: API, question: string, ask: () => Promise<T>): void {
  const answer = ask()
  answer.catch(() => {})
  const all = waiting.get(api) ?? new Map<string, Promise<unknown>>()
  waiting.set(api, all.set(question, answer))
}

// take returns what was asked ahead, once, or asks. What it is asked under says all of the
// question, so that an answer is of its type.
export function take<T>(api: API, question: string, ask: () => Promise<T>): Promise<T> {
  const answer = waiting.get(api)?.get(question) as Promise<T> | undefined
  waiting.get(api)?.delete(question)
  return answer ?? ask()
}

// forget drops what no screen took: it grows old.
export function forget(api: API): void { waiting.delete(api) }
