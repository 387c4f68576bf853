// A count that moves while one looks: server-sent events, read with the key, which an
// EventSource could not show.
import { Refused } from '../api/client'

export type Open = (signal: AbortSignal) => Promise<ReadableStream<Uint8Array<ArrayBuffer>>>

const first = 1000 // milliseconds until it is tried again, doubled each time
const most = 30_000

export class Live {
  clicks = $state<number>()
  connected = $state(false)
  #open: Open

  constructor(open: Open) { this.#open = open }

  // run follows the count until what it returns is called.
  run(): () => void {
    const going = new AbortController()
    void this.#follow(going.signal)
    return () => going.abort()
  }

  async #follow(signal: AbortSignal) {
    for (let wait = first; !signal.aborted; wait = Math.min(2 * wait, most)) {
      try {
        const stream = await this.#open(signal)
        for await (const event of events(stream)) {
          this.connected = true
          this.clicks = event.clicks
          wait = first
        }
      } catch (e) {
        if (e instanceof Refused && (e.status === 403 || e.status === 404)) return
      }
      this.connected = false
      await new Promise(done => setTimeout(done, wait))
    }
  }
}

// events yields what each event of a stream says.
async function * events(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<{ clicks: number }> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const whole = (text + value).split('\n\n')
    text = whole.pop()!
    for (const event of whole) {
      const data = event.split('\n').find(line => line.startsWith('data: '))
      if (data) yield JSON.parse(data.slice('data: '.length))
    }
  }
}
